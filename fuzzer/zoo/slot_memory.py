"""Memory of the llama flavour: cells side by side, a window that forgets, a running state that cannot go back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fuzzer.zoo.arithmetic import Floats, Integers
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.model import Mixer, ModelShape


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What full attention cells cannot give back at ``position``: the window's cells and the running states."""

    position: int
    window_start: int
    keys: Floats  # (windowed layers, cells, heads, head size)
    values: Floats
    states: Floats  # (layers, width)


class SlotMemory:
    """Cells are valid below ``length``; windowed layers have lost theirs below ``window_start``."""

    def __init__(self, shape: ModelShape, bug: Bug | None) -> None:
        self._shape = shape
        self._bug = bug
        layers = len(shape.mixers)
        self._windowed = [index for index, mixer in enumerate(shape.mixers) if mixer is Mixer.WINDOWED]
        self._recurrent = Mixer.RECURRENT in shape.mixers
        self._keys = np.zeros((layers, shape.context, shape.heads, shape.head_size), np.float32)
        self._values = np.zeros_like(self._keys)
        self._positions = np.zeros(shape.context, np.int64)
        self._states = np.zeros((layers, shape.width), np.float32)
        self.position = 0
        self.length = 0
        self._window_start = 0
        self._absorbed = 0

    def write(self, layer: int, keys: Floats, values: Floats, positions: Integers) -> None:
        places = slice(self.length, self.length + len(keys))
        self._keys[layer, places] = keys
        self._values[layer, places] = values
        self._positions[places] = positions

    def read(self, layer: int, count: int) -> tuple[Floats, Floats, Integers]:
        end = self.length + count
        return self._keys[layer, :end], self._values[layer, :end], self._positions[:end]

    def state(self, layer: int) -> Floats:
        row: Floats = self._states[layer]
        return row

    def set_state(self, layer: int, state: Floats) -> None:
        self._states[layer] = state

    def advance(self, count: int) -> None:
        self.length += count
        self.position += count
        self._absorbed += count
        self._forget_outside_window()

    def resumable(self, count: int) -> bool:
        """Whether the next token can go to place ``count`` with nothing else than the cells."""
        if self._bug is Bug.RECURRENT_TRIM_IGNORED:
            return True
        if self._recurrent and self._absorbed != count:
            return False
        return not self._windowed or self._window_reaches(count)

    def truncate(self, count: int) -> None:
        if self._bug is Bug.WINDOW_TRIMMED_TOO_LITTLE and self._windowed:
            self.position = count
            self.length = max(count, self.length - self._shape.window)
            return
        # Relative, since positions and places are two counts: positions follow what was removed.
        if self._bug is not Bug.POSITION_NOT_REWOUND:
            self.position -= self.length - count
        self.length = count

    def clear(self, *, states: bool = True) -> None:
        self._keys[:] = 0
        self._values[:] = 0
        if states:
            self._states[:] = 0
        self.position = self.length = self._window_start = self._absorbed = 0

    def checkpoint(self) -> Checkpoint:
        cells = (self._windowed, slice(self._window_start, self.length))
        position = self.length - 1 if self._bug is Bug.CHECKPOINT_ONE_TOKEN_AHEAD else self.length
        return Checkpoint(position, self._window_start, self._keys[cells], self._values[cells], self._states.copy())

    def restore(self, checkpoint: Checkpoint) -> None:
        cells = (self._windowed, slice(checkpoint.window_start, checkpoint.window_start + checkpoint.keys.shape[1]))
        self._keys[cells] = checkpoint.keys
        self._values[cells] = checkpoint.values
        self._states[:] = checkpoint.states
        self._window_start = checkpoint.window_start
        self._absorbed = checkpoint.position
        self.truncate(checkpoint.position)

    def copy(self) -> SlotMemory:
        twin = SlotMemory(self._shape, self._bug)
        twin.overwrite(self)
        return twin

    def overwrite(self, source: SlotMemory) -> None:
        """Become a copy of another sequence's memory."""
        self._keys[:], self._values[:] = source._keys, source._values
        self._positions[:], self._states[:] = source._positions, source._states
        self.position, self.length = source.position, source.length
        self._window_start, self._absorbed = source._window_start, source._absorbed

    def _window_reaches(self, count: int) -> bool:
        if self._bug in (Bug.WINDOW_REUSED_TOO_DEEP, Bug.WINDOW_TRIMMED_TOO_LITTLE):
            return True
        return self._window_start <= max(0, count - self._shape.window + 1)

    def _forget_outside_window(self) -> None:
        start = max(self._window_start, self.length - self._shape.window + 1)
        for layer in self._windowed:
            self._keys[layer, self._window_start : start] = 0
            self._values[layer, self._window_start : start] = 0
        self._window_start = start
