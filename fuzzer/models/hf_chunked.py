"""Chunked attention as a Hugging Face model: llama4, whose tokens see their own chunk and, in every fourth layer, all.

Its text model without experts, in the names of the whole multimodal model, which is how mlx-lm loads it.
"""

from __future__ import annotations

from typing import Any

from fuzzer.models.blueprint import FEED_FORWARD, Tensor, norm
from fuzzer.models.hf_blueprint import TRANSFORMER_CONFIG, HFBlueprint, hf_attention, hf_embeddings, hf_feed_forward

CHUNK = 32
_LAYERS = 4
_PREFIX = "language_model."


def hf_chunked() -> HFBlueprint:
    """Four layers, three of them with chunks of 32 tokens."""
    layers = [tensor for layer in range(_LAYERS) for tensor in _layer(f"{_PREFIX}model.layers.{layer}")]
    return HFBlueprint(
        config={"architectures": ["Llama4ForConditionalGeneration"], "model_type": "llama4", **_config()},
        tensors=(*hf_embeddings(_PREFIX), norm(f"{_PREFIX}model.norm.weight"), *layers),
        layers=_LAYERS,
        window=CHUNK,
        engines=("mlx-lm",),
    )


def _config() -> dict[str, Any]:
    text = {
        **TRANSFORMER_CONFIG,
        "model_type": "llama4_text",
        "num_hidden_layers": _LAYERS,
        "attention_chunk_size": CHUNK,
        "intermediate_size_mlp": FEED_FORWARD,
        "interleave_moe_layer_step": _LAYERS + 1,
        "num_local_experts": 1,
        "num_experts_per_tok": 1,
        "rope_scaling": None,
        "use_qk_norm": True,
        "attn_temperature_tuning": False,
    }
    eos = {key: TRANSFORMER_CONFIG[key] for key in ("bos_token_id", "eos_token_id", "vocab_size")}
    return {"text_config": text, "tie_word_embeddings": False, **eos}


def _layer(layer: str) -> tuple[Tensor, ...]:
    return (
        norm(f"{layer}.input_layernorm.weight"),
        *hf_attention(layer),
        norm(f"{layer}.post_attention_layernorm.weight"),
        *hf_feed_forward(layer, "feed_forward"),
    )
