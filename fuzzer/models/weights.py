"""Random weights that are the same bytes on every machine.

NumPy promises a stable stream for the raw bits of PCG64, not for its distributions, and those call the platform's
``log`` and ``exp``. Sums of integers and one multiplication are exact everywhere.
"""

from __future__ import annotations

import math
import zlib

import numpy as np
import numpy.typing as npt

from fuzzer.models.blueprint import Tensor

_PARTS = 4
_PART_RANGE = 1 << 16
_MEAN = _PARTS * (_PART_RANGE - 1) / 2
_DEVIATION = math.sqrt(_PARTS * (_PART_RANGE**2 - 1) / 12)


def draw(tensor: Tensor, *seeds: int) -> npt.NDArray[np.float32]:
    """Values with the tensor's mean and deviation, near normal, never further out than 3.5 deviations."""
    if tensor.deviation == 0:
        return np.full(tensor.shape, tensor.mean, dtype=np.float32)
    # A stream for each tensor, so that adding one leaves the others as they were.
    values = (
        tensor.mean + _standard(math.prod(tensor.shape), *seeds, zlib.crc32(tensor.name.encode())) * tensor.deviation
    )
    return values.astype(np.float32).reshape(tensor.shape)


def _standard(count: int, *seeds: int) -> npt.NDArray[np.float64]:
    bits = np.random.PCG64(np.random.SeedSequence(seeds))
    parts = bits.random_raw(count).view(np.uint16).reshape(count, _PARTS)
    standard: npt.NDArray[np.float64] = (parts.sum(axis=1, dtype=np.int64) - _MEAN) / _DEVIATION
    return standard
