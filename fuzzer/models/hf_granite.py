"""State-space layers around one of attention as a Hugging Face model: granitemoehybrid, without experts."""

from __future__ import annotations

from fuzzer.models.blueprint import FEED_FORWARD, WIDTH, Tensor, adapted, linear, norm
from fuzzer.models.hf_blueprint import HF_HEAD_WIDTH, TRANSFORMER_CONFIG, HFBlueprint, hf_embeddings

_LAYERS = ("mamba", "attention", "mamba")
_HEADS, _KV_HEADS = WIDTH // HF_HEAD_WIDTH, 1
_SHARPER_ATTENTION = 2.0
_STATE_HEADS, _STATE_HEAD_WIDTH, _STATE, _KERNEL = 4, 32, 16, 4
_INNER = _STATE_HEADS * _STATE_HEAD_WIDTH
_MIXED = _INNER + 2 * _STATE
# What goes through the state must outweigh what goes around it, or a stale state would not show.
_STATE_GAIN = 2.0
_BYPASS = 0.25


def hf_granite() -> HFBlueprint:
    """Three layers, the middle one of attention."""
    layers = [tensor for layer, kind in enumerate(_LAYERS) for tensor in _layer(f"model.layers.{layer}", kind)]
    config = {key: value for key, value in TRANSFORMER_CONFIG.items() if key != "head_dim"}
    return HFBlueprint(
        config={
            **config,
            "architectures": ["GraniteMoeHybridForCausalLM"],
            "model_type": "granitemoehybrid",
            "num_hidden_layers": len(_LAYERS),
            "layer_types": list(_LAYERS),
            "num_attention_heads": _HEADS,
            "num_key_value_heads": _KV_HEADS,
            "position_embedding_type": "nope",
            "attention_multiplier": HF_HEAD_WIDTH**-0.5,
            "embedding_multiplier": 1.0,
            "residual_multiplier": 1.0,
            "logits_scaling": 1.0,
            "num_local_experts": 0,
            "num_experts_per_tok": 0,
            "shared_intermediate_size": FEED_FORWARD,
            "mamba_n_heads": _STATE_HEADS,
            "mamba_d_head": _STATE_HEAD_WIDTH,
            "mamba_n_groups": 1,
            "mamba_d_state": _STATE,
            "mamba_d_conv": _KERNEL,
            "mamba_expand": _INNER // WIDTH,
            "mamba_chunk_size": 32,
            "mamba_conv_bias": True,
            "mamba_proj_bias": False,
        },
        tensors=(*hf_embeddings(), norm("model.norm.weight"), *layers),
        layers=len(_LAYERS),
        engines=("vllm", "mlx-lm"),
    )


def _layer(layer: str, kind: str) -> tuple[Tensor, ...]:
    return (
        norm(f"{layer}.input_layernorm.weight"),
        *(_attention(f"{layer}.self_attn") if kind == "attention" else _state_space(f"{layer}.mamba")),
        norm(f"{layer}.post_attention_layernorm.weight"),
        linear(f"{layer}.shared_mlp.input_linear.weight", 2 * FEED_FORWARD, WIDTH),
        linear(f"{layer}.shared_mlp.output_linear.weight", WIDTH, FEED_FORWARD),
    )


def _attention(block: str) -> tuple[Tensor, ...]:
    kv_width = _KV_HEADS * HF_HEAD_WIDTH
    return (
        adapted(f"{block}.q_proj.weight", WIDTH, WIDTH, _SHARPER_ATTENTION),
        adapted(f"{block}.k_proj.weight", kv_width, WIDTH, _SHARPER_ATTENTION),
        adapted(f"{block}.v_proj.weight", kv_width, WIDTH),
        adapted(f"{block}.o_proj.weight", WIDTH, WIDTH),
    )


def _state_space(block: str) -> tuple[Tensor, ...]:
    """The tensors of one mamba2 mixer; small steps (softplus of -4) remember for tens of tokens."""
    return (
        linear(f"{block}.in_proj.weight", _INNER + _MIXED + _STATE_HEADS, WIDTH, _STATE_GAIN),
        Tensor(f"{block}.conv1d.weight", (_MIXED, 1, _KERNEL), deviation=_KERNEL**-0.5),
        Tensor(f"{block}.conv1d.bias", (_MIXED,)),
        Tensor(f"{block}.dt_bias", (_STATE_HEADS,), deviation=1.0, mean=-4.0),
        Tensor(f"{block}.A_log", (_STATE_HEADS,), deviation=0.25),
        Tensor(f"{block}.D", (_STATE_HEADS,), mean=_BYPASS),
        norm(f"{block}.norm.weight", _INNER),
        linear(f"{block}.out_proj.weight", WIDTH, _INNER),
    )
