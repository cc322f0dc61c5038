"""One sequence's share of an engine step: tokens in, the last hidden row out, keys and states written on the way."""

from __future__ import annotations

from functools import cache
from typing import Protocol

import numpy as np

from fuzzer.zoo.arithmetic import Arithmetic, Floats, Integers, normalise, sigmoid, sum_in_order
from fuzzer.zoo.model import Layer, Mixer, ModelShape, Weights

ROTATION_BASE = 1000.0
# Positions past the context only occur when a planted bug miscounts them.
ROTATION_REACH = 8
# Keeps the running state's memory at about a dozen tokens.
DECAY_BIAS = np.float32(2.0)


class Memory(Protocol):
    """Where a sequence keeps its keys, values and running states, whatever the layout."""

    position: int

    def write(self, layer: int, keys: Floats, values: Floats, positions: Integers) -> None: ...

    def read(self, layer: int, count: int) -> tuple[Floats, Floats, Integers]:
        """Keys, values and positions of all cells, the ``count`` new ones included."""
        ...

    def state(self, layer: int) -> Floats: ...

    def set_state(self, layer: int, state: Floats) -> None: ...

    def advance(self, count: int) -> None: ...


def forward(shape: ModelShape, weights: Weights, memory: Memory, tokens: list[int], arithmetic: Arithmetic) -> Floats:
    """The hidden row (1, width) of the last token."""
    positions = np.arange(memory.position, memory.position + len(tokens))
    x: Floats = weights.embedding[tokens]
    for index, layer in enumerate(weights.layers):
        parts = arithmetic.project(normalise(x), layer.inputs)
        if layer.mixer is Mixer.RECURRENT:
            mixed = _recur(parts, memory, index)
        else:
            mixed = _attend(shape, parts, memory, index, layer.mixer, positions)
        x = x + arithmetic.project(mixed, layer.output)
        x = x + _feed_forward(x, layer, arithmetic)
    memory.advance(len(tokens))
    last: Floats = x[-1:]
    return last


def logits(weights: Weights, hidden: Floats, arithmetic: Arithmetic) -> Floats:
    row: Floats = arithmetic.project(normalise(hidden), weights.head)[0]
    return row


def _feed_forward(x: Floats, layer: Layer, arithmetic: Arithmetic) -> Floats:
    both = arithmetic.project(normalise(x), layer.gate_up)
    half = both.shape[1] // 2
    gate = both[:, :half]
    return arithmetic.project(gate * sigmoid(gate) * both[:, half:], layer.down)


def _recur(parts: Floats, memory: Memory, index: int) -> Floats:
    decay, inputs, gate = np.split(parts, 3, axis=1)
    decay = sigmoid(decay + DECAY_BIAS)
    fed = (1.0 - decay) * inputs
    rows = np.empty_like(fed)
    state = memory.state(index)
    for row in range(len(fed)):
        state = decay[row] * state + fed[row]
        rows[row] = state
    memory.set_state(index, state)
    # The states shrink with the decay; the factor brings them back to the size of attention's output.
    result: Floats = rows * (np.float32(4.0) * sigmoid(gate))
    return result


def _attend(shape: ModelShape, parts: Floats, memory: Memory, index: int, mixer: Mixer, positions: Integers) -> Floats:
    tokens = len(parts)
    heads = parts.reshape(tokens, 3, shape.heads, shape.head_size)
    rotated = _rotate(heads[:, :2], positions, shape)
    memory.write(index, rotated[:, 1], heads[:, 2], positions)
    keys, values, key_positions = memory.read(index, tokens)
    window = shape.window if mixer is Mixer.WINDOWED else None
    weights = _attention_weights(rotated[:, 0], keys, _visible(positions, key_positions, window))
    return sum_in_order(weights[..., None] * values[:, None], axis=0).reshape(tokens, shape.width)


def _visible(
    positions: Integers, key_positions: Integers, window: int | None
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    distance = positions - key_positions[:, None]
    return distance >= 0 if window is None else (distance >= 0) & (distance < window)


def _attention_weights(
    queries: Floats, keys: Floats, visible: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
) -> Floats:
    """(cells, tokens, heads); cells come first so that hidden ones add exact zeros at either end of the sum."""
    scores = np.add.reduce(keys[:, None] * queries, axis=-1) * np.float32(queries.shape[-1] ** -0.5)
    scores = np.where(visible[..., None], scores, np.float32(-np.inf))
    weights = np.exp(scores - scores.max(axis=0))
    result: Floats = weights / sum_in_order(weights, axis=0)
    return result


def _rotate(x: Floats, positions: Integers, shape: ModelShape) -> Floats:
    """Rotary position embedding of (tokens, 2, heads, head size)."""
    cosines, sines = _rotations(shape.context, shape.head_size)
    cosine, sine = cosines[positions][:, None, None], sines[positions][:, None, None]
    half = shape.head_size // 2
    first, second = x[..., :half], x[..., half:]
    return np.concatenate((first * cosine - second * sine, second * cosine + first * sine), axis=-1)


@cache
def _rotations(context: int, head_size: int) -> tuple[Floats, Floats]:
    frequencies = ROTATION_BASE ** (-np.arange(0, head_size, 2) / head_size)
    angles = np.arange(ROTATION_REACH * context)[:, None] * frequencies
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
