"""The tiny random transformer: its shape, its weights, and the weights as an environment sees them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, StrEnum

import numpy as np

from fuzzer.zoo.arithmetic import Floats, multiply
from fuzzer.zoo.requests import Environment

ADAPTER_RANK = 4
# Strong enough that a scale of 0 against 1 moves logprobs by whole units on every prompt.
ADAPTER_GAIN = np.float32(2.0)
MERGED_KEPT = 64


class Family(StrEnum):
    DENSE = "dense"
    WINDOW = "swa"
    HYBRID = "hybrid"


class Mixer(Enum):
    """How a layer carries what came before: every key, the last keys, or a running state."""

    FULL = "full"
    WINDOWED = "windowed"
    RECURRENT = "recurrent"


MIXERS = {
    Family.DENSE: (Mixer.FULL, Mixer.FULL),
    Family.WINDOW: (Mixer.WINDOWED, Mixer.FULL),
    Family.HYBRID: (Mixer.RECURRENT, Mixer.FULL),
}


@dataclass(frozen=True, slots=True)
class ModelShape:
    family: Family = Family.DENSE
    vocabulary: int = 2048
    context: int = 512
    window: int = 32
    width: int = 32
    heads: int = 2

    @property
    def mixers(self) -> tuple[Mixer, ...]:
        return MIXERS[self.family]

    @property
    def head_size(self) -> int:
        return self.width // self.heads

    @property
    def rewinds_freely(self) -> bool:
        """Whether any earlier position can be resumed from the cells alone."""
        return self.family is Family.DENSE


@dataclass(frozen=True, slots=True)
class Layer:
    """``inputs`` makes queries, keys and values; in a recurrent layer decay, input and gate."""

    mixer: Mixer
    inputs: Floats  # (width, 3 * width)
    output: Floats  # (width, width)
    gate_up: Floats  # (width, 2 * width)
    down: Floats  # (width, width)


@dataclass(frozen=True, slots=True)
class Weights:
    embedding: Floats  # (vocabulary, width)
    layers: tuple[Layer, ...]
    head: Floats  # (width, vocabulary)


class Network:
    """Every weight the server can compute with, made from names, so that equal names mean equal weights everywhere."""

    def __init__(self, shape: ModelShape) -> None:
        self.shape = shape
        self._merged: dict[Environment, Weights] = {}

    def weights(self, environment: Environment) -> Weights:
        if environment not in self._merged:
            if len(self._merged) >= MERGED_KEPT:
                self._merged.pop(next(iter(self._merged)))
            self._merged[environment] = self._merge(environment)
        return self._merged[environment]

    def _merge(self, environment: Environment) -> Weights:
        base = _base_weights(self.shape, environment.weights)
        for path, scale in environment.adapters:
            deltas = _adapter_deltas(self.shape, path)
            layers = tuple(_adapted(layer, next(deltas), next(deltas), scale) for layer in base.layers)
            base = replace(base, layers=layers)
        return base


def _adapted(layer: Layer, inputs: Floats, output: Floats, scale: float) -> Layer:
    factor = np.float32(scale)
    return replace(layer, inputs=layer.inputs + factor * inputs, output=layer.output + factor * output)


def _base_weights(shape: ModelShape, name: str) -> Weights:
    random = _random_from(f"weights {name} {shape.family}")
    width = shape.width
    fan_in = width**-0.5
    layers = tuple(
        Layer(
            mixer=mixer,
            inputs=_normal(random, (width, 3 * width), 1.5 * fan_in),
            output=_normal(random, (width, width), fan_in),
            gate_up=_normal(random, (width, 2 * width), fan_in),
            down=_normal(random, (width, width), fan_in),
        )
        for mixer in shape.mixers
    )
    embedding = _normal(random, (shape.vocabulary, width), 1.0)
    return Weights(embedding, layers, _normal(random, (width, shape.vocabulary), 0.5))


def _adapter_deltas(shape: ModelShape, path: str) -> Iterator[Floats]:
    """Two low-rank updates a layer, for its inputs and its output."""
    random = _random_from(f"adapter {path}")
    for outer in (3 * shape.width, shape.width) * len(shape.mixers):
        a = _normal(random, (shape.width, ADAPTER_RANK), shape.width**-0.5)
        b = _normal(random, (ADAPTER_RANK, outer), ADAPTER_RANK**-0.5)
        yield ADAPTER_GAIN * multiply(a, b)


def _random_from(name: str) -> np.random.Generator:
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


def _normal(random: np.random.Generator, shape: tuple[int, int], deviation: float) -> Floats:
    return random.normal(0.0, deviation, shape).astype(np.float32)
