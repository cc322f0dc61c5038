"""What a tiny model is made of, as data: its settings and its tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fuzzer.models import vocabulary

WIDTH = 64
FEED_FORWARD = 128
HEADS = 4
KV_HEADS = 2
HEAD_WIDTH = WIDTH // HEADS
CONTEXT = 4096

# Peaked enough that a change of scale moves every logprob, flat enough not to saturate.
_OUTPUT_DEVIATION = 0.3
_SHARPER_ATTENTION = 2.0

Setting = int | float | Sequence[int]


@dataclass(frozen=True, slots=True)
class Tensor:
    """One weight: ``shape`` in NumPy order, outputs before inputs; ``adapted`` says that adapters change it."""

    name: str
    shape: tuple[int, ...]
    deviation: float = 0.0
    mean: float = 0.0
    adapted: bool = False


@dataclass(frozen=True, slots=True)
class Blueprint:
    """An architecture of llama.cpp at toy size; ``settings`` leave out the architecture's name before the dot."""

    architecture: str
    settings: Mapping[str, Setting]
    tensors: tuple[Tensor, ...]
    window: int | None = None
    recurrent: bool = False


def linear(name: str, outputs: int, inputs: int, gain: float = 1.0) -> Tensor:
    """A matrix that keeps the variance of its input, times ``gain`` squared."""
    return Tensor(name, (outputs, inputs), deviation=gain / math.sqrt(inputs))


def adapted(name: str, outputs: int, inputs: int, gain: float = 1.0) -> Tensor:
    """A linear map that adapters change."""
    return replace(linear(name, outputs, inputs, gain), adapted=True)


def norm(name: str, width: int = WIDTH, gain: float = 1.0) -> Tensor:
    """The weight of a normalisation: every element is ``gain``."""
    return Tensor(name, (width,), mean=gain)


def embeddings(deviation: float = 1.0) -> tuple[Tensor, ...]:
    """Untied input and output embeddings: tied ones make some architectures repeat the last token."""
    return (
        Tensor("token_embd.weight", (vocabulary.SIZE, WIDTH), deviation),
        Tensor("output.weight", (vocabulary.SIZE, WIDTH), _OUTPUT_DEVIATION),
    )


def attention(layer: int) -> tuple[Tensor, ...]:
    """Grouped-query attention of one layer."""
    block, kv_width = f"blk.{layer}", KV_HEADS * HEAD_WIDTH
    return (
        adapted(f"{block}.attn_q.weight", WIDTH, WIDTH, _SHARPER_ATTENTION),
        adapted(f"{block}.attn_k.weight", kv_width, WIDTH, _SHARPER_ATTENTION),
        adapted(f"{block}.attn_v.weight", kv_width, WIDTH),
        adapted(f"{block}.attn_output.weight", WIDTH, WIDTH),
    )


def feed_forward(layer: int) -> tuple[Tensor, ...]:
    """Gated feed-forward network of one layer, with the normalisation before it."""
    block = f"blk.{layer}"
    return (
        norm(f"{block}.ffn_norm.weight"),
        linear(f"{block}.ffn_gate.weight", FEED_FORWARD, WIDTH),
        linear(f"{block}.ffn_up.weight", FEED_FORWARD, WIDTH),
        linear(f"{block}.ffn_down.weight", WIDTH, FEED_FORWARD),
    )


TRANSFORMER_SETTINGS: Mapping[str, Setting] = {
    "context_length": CONTEXT,
    "embedding_length": WIDTH,
    "feed_forward_length": FEED_FORWARD,
    "attention.head_count": HEADS,
    "attention.head_count_kv": KV_HEADS,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.freq_base": 10000.0,
    "vocab_size": vocabulary.SIZE,
}
