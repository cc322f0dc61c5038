"""Sliding-window attention as a Hugging Face model: gemma3, five windowed layers and a full one."""

from __future__ import annotations

from fuzzer.models.blueprint import WIDTH, Tensor, norm
from fuzzer.models.hf_blueprint import (
    HF_HEAD_WIDTH,
    TRANSFORMER_CONFIG,
    HFBlueprint,
    hf_attention,
    hf_embeddings,
    hf_feed_forward,
)
from fuzzer.models.swa import WINDOW

_LAYERS = 6
_EMBEDDING_DEVIATION = 0.25
_POST_NORM_GAIN = 0.5


def hf_swa() -> HFBlueprint:
    """Six layers, five of them with a window of 32 tokens."""
    layers = [tensor for layer in range(_LAYERS) for tensor in _layer(f"model.layers.{layer}")]
    return HFBlueprint(
        config={
            **TRANSFORMER_CONFIG,
            "architectures": ["Gemma3ForCausalLM"],
            "model_type": "gemma3_text",
            "num_hidden_layers": _LAYERS,
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": HF_HEAD_WIDTH,
            "rope_theta": 1000000.0,
            "rope_local_base_freq": 10000.0,
            "rms_norm_eps": 1e-6,
            "sliding_window": WINDOW,
            "sliding_window_pattern": _LAYERS,
            "layer_types": ["sliding_attention"] * (_LAYERS - 1) + ["full_attention"],
        },
        tensors=(*hf_embeddings(deviation=_EMBEDDING_DEVIATION), _norm("model.norm.weight"), *layers),
        layers=_LAYERS,
        window=WINDOW,
    )


def _layer(layer: str) -> tuple[Tensor, ...]:
    return (
        _norm(f"{layer}.input_layernorm.weight"),
        *hf_attention(layer),
        _norm(f"{layer}.self_attn.q_norm.weight", HF_HEAD_WIDTH),
        _norm(f"{layer}.self_attn.k_norm.weight", HF_HEAD_WIDTH),
        _norm(f"{layer}.post_attention_layernorm.weight", gain=_POST_NORM_GAIN),
        _norm(f"{layer}.pre_feedforward_layernorm.weight"),
        *hf_feed_forward(layer),
        _norm(f"{layer}.post_feedforward_layernorm.weight", gain=_POST_NORM_GAIN),
    )


def _norm(name: str, width: int = WIDTH, gain: float = 1.0) -> Tensor:
    """Gemma stores how far a gain is from one."""
    return norm(name, width, gain - 1.0)
