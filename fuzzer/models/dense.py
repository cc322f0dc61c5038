"""Plain attention in every layer: the llama architecture, where most servers keep most of their caches."""

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

_LAYERS = 2


def dense() -> Blueprint:
    """Two layers of grouped-query attention."""
    layers = [tensor for layer in range(_LAYERS) for tensor in _layer(layer)]
    return Blueprint(
        architecture="llama",
        settings={**TRANSFORMER_SETTINGS, "block_count": _LAYERS, "rope.dimension_count": HEAD_WIDTH},
        tensors=(*embeddings(), norm("output_norm.weight"), *layers),
    )


def _layer(layer: int) -> tuple[Tensor, ...]:
    return (norm(f"blk.{layer}.attn_norm.weight"), *attention(layer), *feed_forward(layer))
