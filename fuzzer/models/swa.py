"""Sliding-window attention: gemma3, whose windowed layers forget and whose every sixth layer does not."""

from __future__ import annotations

from fuzzer.models.blueprint import (
    HEAD_WIDTH,
    TRANSFORMER_SETTINGS,
    Blueprint,
    Tensor,
    attention,
    embeddings,
    feed_forward,
    norm,
)

WINDOW = 32
# llama.cpp fixes the pattern: five windowed layers, then a full one.
_LAYERS = 6
# gemma3 multiplies embeddings by the root of the width, 8: at deviation 1 they would drown what the layers add.
_EMBEDDING_DEVIATION = 0.25
# At gain 1 six layers of random weights amplify rounding.
_POST_NORM_GAIN = 0.5


def swa() -> Blueprint:
    """Six layers, five of them with a window of 32 tokens."""
    layers = [tensor for layer in range(_LAYERS) for tensor in _layer(layer)]
    return Blueprint(
        architecture="gemma3",
        settings={
            **TRANSFORMER_SETTINGS,
            "block_count": _LAYERS,
            "attention.key_length": HEAD_WIDTH,
            "attention.value_length": HEAD_WIDTH,
            "attention.sliding_window": WINDOW,
        },
        tensors=(*embeddings(_EMBEDDING_DEVIATION), norm("output_norm.weight"), *layers),
        window=WINDOW,
    )


def _layer(layer: int) -> tuple[Tensor, ...]:
    block = f"blk.{layer}"
    return (
        norm(f"{block}.attn_norm.weight"),
        *attention(layer),
        norm(f"{block}.attn_q_norm.weight", HEAD_WIDTH),
        norm(f"{block}.attn_k_norm.weight", HEAD_WIDTH),
        norm(f"{block}.post_attention_norm.weight", gain=_POST_NORM_GAIN),
        *feed_forward(layer),
        norm(f"{block}.post_ffw_norm.weight", gain=_POST_NORM_GAIN),
    )
