"""Plain attention in every layer, as a Hugging Face model: llama."""

from __future__ import annotations

from fuzzer.models.blueprint import Tensor, norm
from fuzzer.models.hf_blueprint import TRANSFORMER_CONFIG, HFBlueprint, hf_attention, hf_embeddings, hf_feed_forward

_LAYERS = 2


def hf_dense() -> HFBlueprint:
    """Two layers of grouped-query attention."""
    layers = [tensor for layer in range(_LAYERS) for tensor in _layer(f"model.layers.{layer}")]
    return HFBlueprint(
        config={
            **TRANSFORMER_CONFIG,
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "num_hidden_layers": _LAYERS,
            "mlp_bias": False,
        },
        tensors=(*hf_embeddings(), norm("model.norm.weight"), *layers),
        layers=_LAYERS,
    )


def _layer(layer: str) -> tuple[Tensor, ...]:
    return (
        norm(f"{layer}.input_layernorm.weight"),
        *hf_attention(layer),
        norm(f"{layer}.post_attention_layernorm.weight"),
        *hf_feed_forward(layer),
    )
