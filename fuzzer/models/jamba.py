"""A hybrid: jamba, where some layers keep a state and the others a KV cache, and both must agree."""

from __future__ import annotations

from fuzzer.models.blueprint import (
    KV_HEADS,
    TRANSFORMER_SETTINGS,
    Blueprint,
    Tensor,
    attention,
    embeddings,
    feed_forward,
    norm,
)
from fuzzer.models.mamba import STATE, STATE_SPACE_SETTINGS, TIME_RANK, state_space

# KV heads of each layer; 0 marks a state-space layer.
_KV_HEADS = (0, KV_HEADS, 0, KV_HEADS)


def jamba() -> Blueprint:
    """State space and attention, in turn, four layers in all."""
    layers = [tensor for layer, kv_heads in enumerate(_KV_HEADS) for tensor in _layer(layer, kv_heads)]
    return Blueprint(
        architecture="jamba",
        settings={
            **TRANSFORMER_SETTINGS,
            **STATE_SPACE_SETTINGS,
            "block_count": len(_KV_HEADS),
            "attention.head_count_kv": _KV_HEADS,
        },
        tensors=(*embeddings(), norm("output_norm.weight"), *layers),
        recurrent=True,
    )


def _layer(layer: int, kv_heads: int) -> tuple[Tensor, ...]:
    mixer = attention(layer) if kv_heads else (*state_space(layer), *_state_norms(layer))
    return (norm(f"blk.{layer}.attn_norm.weight"), *mixer, *feed_forward(layer))


def _state_norms(layer: int) -> tuple[Tensor, ...]:
    return (
        norm(f"blk.{layer}.ssm_dt_norm.weight", TIME_RANK),
        norm(f"blk.{layer}.ssm_b_norm.weight", STATE),
        norm(f"blk.{layer}.ssm_c_norm.weight", STATE),
    )
