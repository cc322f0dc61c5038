"""State-space layers: mamba, whose whole past is one state that cannot be cut back to a prefix."""

from __future__ import annotations

from collections.abc import Mapping

from fuzzer.models import vocabulary
from fuzzer.models.blueprint import CONTEXT, WIDTH, Blueprint, Setting, Tensor, adapted, embeddings, linear, norm

STATE = 16
TIME_RANK = 4

_LAYERS = 2
_KERNEL = 4
# llama.cpp supports an expansion of two only.
_INNER = 2 * WIDTH
# What goes through the state must outweigh what goes around it, or a stale state would not show.
_STATE_GAIN = 2.0
_BYPASS = 0.25

STATE_SPACE_SETTINGS: Mapping[str, Setting] = {
    "ssm.conv_kernel": _KERNEL,
    "ssm.inner_size": _INNER,
    "ssm.state_size": STATE,
    "ssm.time_step_rank": TIME_RANK,
}


def mamba() -> Blueprint:
    """Two state-space layers and no attention."""
    layers = [tensor for layer in range(_LAYERS) for tensor in _layer(layer)]
    return Blueprint(
        architecture="mamba",
        settings={
            **STATE_SPACE_SETTINGS,
            "context_length": CONTEXT,
            "embedding_length": WIDTH,
            "feed_forward_length": 0,
            "attention.head_count": 0,
            "attention.layer_norm_rms_epsilon": 1e-5,
            "block_count": _LAYERS,
            "vocab_size": vocabulary.SIZE,
        },
        tensors=(*embeddings(), norm("output_norm.weight"), *layers),
        recurrent=True,
    )


def state_space(layer: int) -> tuple[Tensor, ...]:
    """The tensors of one selective state space."""
    block = f"blk.{layer}"
    return (
        adapted(f"{block}.ssm_in.weight", 2 * _INNER, WIDTH),
        linear(f"{block}.ssm_conv1d.weight", _INNER, _KERNEL),
        Tensor(f"{block}.ssm_conv1d.bias", (_INNER,)),
        linear(f"{block}.ssm_x.weight", TIME_RANK + 2 * STATE, _INNER, _STATE_GAIN),
        linear(f"{block}.ssm_dt.weight", _INNER, TIME_RANK),
        *_decay(block),
        adapted(f"{block}.ssm_out.weight", WIDTH, _INNER),
    )


def _decay(block: str) -> tuple[Tensor, ...]:
    # Small steps (softplus of -4) remember for tens of tokens; decays below zero keep the state bounded.
    return (
        Tensor(f"{block}.ssm_dt.bias", (_INNER,), deviation=1.0, mean=-4.0),
        Tensor(f"{block}.ssm_a", (_INNER, STATE), deviation=0.25, mean=-1.0),
        Tensor(f"{block}.ssm_d", (_INNER,), mean=_BYPASS),
    )


def _layer(layer: int) -> tuple[Tensor, ...]:
    return (norm(f"blk.{layer}.attn_norm.weight"), *state_space(layer))
