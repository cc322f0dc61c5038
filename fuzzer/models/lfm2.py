"""A hybrid with short convolutions: lfm2, whose recurrent layers remember three tokens and no more."""

from __future__ import annotations

from fuzzer.models.blueprint import (
    HEAD_WIDTH,
    KV_HEADS,
    TRANSFORMER_SETTINGS,
    WIDTH,
    Blueprint,
    Tensor,
    adapted,
    attention,
    embeddings,
    feed_forward,
    linear,
    norm,
)

_KERNEL = 3
# KV heads of each layer; 0 marks a convolution layer.
_KV_HEADS = (0, KV_HEADS, 0, KV_HEADS)


def lfm2() -> Blueprint:
    """Short convolution and attention, in turn, four layers in all."""
    layers = [tensor for layer, kv_heads in enumerate(_KV_HEADS) for tensor in _layer(layer, kv_heads)]
    return Blueprint(
        architecture="lfm2",
        settings={
            **TRANSFORMER_SETTINGS,
            "block_count": len(_KV_HEADS),
            "attention.head_count_kv": _KV_HEADS,
            "shortconv.l_cache": _KERNEL,
        },
        # In this architecture the norm before the output goes by the name of the embedding's.
        tensors=(*embeddings(), norm("token_embd_norm.weight"), *layers),
        recurrent=True,
    )


def _layer(layer: int, kv_heads: int) -> tuple[Tensor, ...]:
    mixer = _normed_attention(layer) if kv_heads else _convolution(layer)
    return (norm(f"blk.{layer}.attn_norm.weight"), *mixer, *feed_forward(layer))


def _normed_attention(layer: int) -> tuple[Tensor, ...]:
    return (
        *attention(layer),
        norm(f"blk.{layer}.attn_q_norm.weight", HEAD_WIDTH),
        norm(f"blk.{layer}.attn_k_norm.weight", HEAD_WIDTH),
    )


def _convolution(layer: int) -> tuple[Tensor, ...]:
    return (
        linear(f"blk.{layer}.shortconv.conv.weight", WIDTH, _KERNEL),
        adapted(f"blk.{layer}.shortconv.in_proj.weight", 3 * WIDTH, WIDTH),
        adapted(f"blk.{layer}.shortconv.out_proj.weight", WIDTH, WIDTH),
    )
