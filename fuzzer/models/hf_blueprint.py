"""What a tiny Hugging Face model is made of, as data; sizes are those of the GGUF models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fuzzer.models import hf_vocabulary
from fuzzer.models.blueprint import (
    CONTEXT,
    FEED_FORWARD,
    HEADS,
    KV_HEADS,
    WIDTH,
    Tensor,
    adapted,
    linear,
)

HF_HEAD_WIDTH = 32
"""vLLM has no attention for smaller heads on a CPU."""
_OUTPUT_DEVIATION = 0.3
_SHARPER_ATTENTION = 2.0


@dataclass(frozen=True, slots=True)
class HFBlueprint:
    """An architecture of transformers at toy size: ``config`` is its config.json."""

    config: Mapping[str, Any]
    tensors: tuple[Tensor, ...]
    layers: int
    window: int | None = None
    engines: tuple[str, ...] = ()
    """Engines that run it on a CPU; empty: all of them."""


def hf_embeddings(prefix: str = "", deviation: float = 1.0) -> tuple[Tensor, ...]:
    """Untied input and output embeddings."""
    size = (hf_vocabulary.SIZE, WIDTH)
    return (
        Tensor(f"{prefix}model.embed_tokens.weight", size, deviation),
        Tensor(f"{prefix}lm_head.weight", size, _OUTPUT_DEVIATION),
    )


def hf_attention(layer: str) -> tuple[Tensor, ...]:
    """Grouped-query attention of one layer."""
    width, kv_width = HEADS * HF_HEAD_WIDTH, KV_HEADS * HF_HEAD_WIDTH
    return (
        adapted(f"{layer}.self_attn.q_proj.weight", width, WIDTH, _SHARPER_ATTENTION),
        adapted(f"{layer}.self_attn.k_proj.weight", kv_width, WIDTH, _SHARPER_ATTENTION),
        adapted(f"{layer}.self_attn.v_proj.weight", kv_width, WIDTH),
        adapted(f"{layer}.self_attn.o_proj.weight", WIDTH, width),
    )


def hf_feed_forward(layer: str, name: str = "mlp") -> tuple[Tensor, ...]:
    """Gated feed-forward network of one layer."""
    return (
        linear(f"{layer}.{name}.gate_proj.weight", FEED_FORWARD, WIDTH),
        linear(f"{layer}.{name}.up_proj.weight", FEED_FORWARD, WIDTH),
        linear(f"{layer}.{name}.down_proj.weight", WIDTH, FEED_FORWARD),
    )


TRANSFORMER_CONFIG: Mapping[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": FEED_FORWARD,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HF_HEAD_WIDTH,
    "max_position_embeddings": CONTEXT,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "vocab_size": hf_vocabulary.SIZE,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "bos_token_id": hf_vocabulary.BEGIN,
    "eos_token_id": hf_vocabulary.END,
    "torch_dtype": "float32",
    "use_cache": True,
}
