"""Memory of the vllm flavour: cells in blocks that requests share, and a row of running states for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fuzzer.zoo.arithmetic import Floats, Integers
from fuzzer.zoo.model import Mixer, ModelShape


@dataclass(frozen=True, slots=True)
class BlockContent:
    """One block taken out of the pool: its cells, and the states at its end where they were kept."""

    keys: Floats  # (layers, block size, heads, head size)
    values: Floats
    positions: Integers
    states: Floats | None  # (layers, width)


class BlockMemory:
    """The arrays of the pool. ``states[row]`` belongs to the running request in that row."""

    def __init__(self, shape: ModelShape, blocks: int, block_size: int, rows: int) -> None:
        layers = len(shape.mixers)
        self.block_size = block_size
        self.recurrent = Mixer.RECURRENT in shape.mixers
        self._keys = np.zeros((layers, blocks * block_size, shape.heads, shape.head_size), np.float32)
        self._values = np.zeros_like(self._keys)
        self._positions = np.zeros(blocks * block_size, np.int64)
        self.states = np.zeros((rows, layers, shape.width), np.float32)
        self.boundary_states: dict[int, Floats] = {}

    def write(self, layer: int, cells: Integers, keys: Floats, values: Floats, positions: Integers) -> None:
        self._keys[layer, cells] = keys
        self._values[layer, cells] = values
        self._positions[cells] = positions

    def read(self, layer: int, cells: Integers) -> tuple[Floats, Floats, Integers]:
        return self._keys[layer, cells], self._values[layer, cells], self._positions[cells]

    def keep_state(self, block: int, row: int) -> None:
        """Note the row's running states as those at the block's end."""
        self.boundary_states[block] = self.states[row].copy()

    def content(self, block: int) -> BlockContent:
        cells = self._cells(block)
        return BlockContent(
            self._keys[:, cells].copy(),
            self._values[:, cells].copy(),
            self._positions[cells].copy(),
            self.boundary_states.get(block),
        )

    def fill(self, block: int, content: BlockContent) -> None:
        cells = self._cells(block)
        self._keys[:, cells] = content.keys
        self._values[:, cells] = content.values
        self._positions[cells] = content.positions
        if content.states is not None:
            self.boundary_states[block] = content.states

    def discard(self) -> None:
        """Lose every cell, as a sleeping server does."""
        self._keys[:] = 0
        self._values[:] = 0

    def _cells(self, block: int) -> slice:
        return slice(block * self.block_size, (block + 1) * self.block_size)


class PagedMemory:
    """One request's view of the blocks in its table."""

    def __init__(self, pool: BlockMemory, table: list[int], row: int, length: int) -> None:
        size = pool.block_size
        self._pool = pool
        self._cells = (np.array(table)[:, None] * size + np.arange(size)).ravel()
        self.row = row
        self.length = length
        self.position = length

    def write(self, layer: int, keys: Floats, values: Floats, positions: Integers) -> None:
        cells = self._cells[self.length : self.length + len(keys)]
        self._pool.write(layer, cells, keys, values, positions)

    def read(self, layer: int, count: int) -> tuple[Floats, Floats, Integers]:
        return self._pool.read(layer, self._cells[: self.length + count])

    def state(self, layer: int) -> Floats:
        row: Floats = self._pool.states[self.row, layer]
        return row

    def set_state(self, layer: int, state: Floats) -> None:
        self._pool.states[self.row, layer] = state

    def advance(self, count: int) -> None:
        self.length += count
        self.position += count
