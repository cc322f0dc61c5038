"""Matrix products whose bits do not depend on the company a row keeps, and a profile whose bits do.

BLAS picks other kernels for one row than for many, so a row computed alone differs from the same row in a batch.
``einsum`` without its optimiser never calls BLAS: it adds the products of the inner axis one after the other, so equal
rows give equal bits. The bf16 profile brings the batch dependence back on purpose, the way split-K kernels do: the
number of partial sums follows the rows of the step; they are kept in float32, and what they add up to is rounded to
bf16. Nine answers in ten then agree to 1e-5 and the others are off by 3e-2, as on real servers in 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

EPSILON = np.float32(1e-6)


class Numerics(StrEnum):
    FLOAT32 = "float32"
    BF16 = "bf16"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How the products of one engine step are rounded; ``rows`` counts the tokens of the whole step."""

    numerics: Numerics
    rows: int

    def project(self, x: Floats, weight: Floats) -> Floats:
        """(tokens, inner) times (inner, outer)."""
        if self.numerics is Numerics.FLOAT32:
            return multiply(x, weight)
        (inner, outer), lanes = weight.shape, self._lanes
        split = x.reshape(len(x), lanes, inner // lanes), weight.reshape(lanes, inner // lanes, outer)
        partial: Floats = np.einsum("tli,lio->tlo", *split)
        return round_to_bf16(sum_in_order(partial, axis=1))

    @property
    def _lanes(self) -> int:
        return 1 if self.rows == 1 else 2 if self.rows < 8 else 4


def multiply(x: Floats, weight: Floats) -> Floats:
    product: Floats = np.einsum("ti,io->to", x, weight)
    return product


def sum_in_order(values: Floats, axis: int) -> Floats:
    """Over an axis that is not the last one numpy adds one after the other, so appended zeros change no bit."""
    total: Floats = np.add.reduce(values, axis=axis)
    return total


def round_to_bf16(values: Floats) -> Floats:
    """Round to nearest even, kept in float32."""
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)


def normalise(x: Floats) -> Floats:
    """Root-mean-square norm of every row."""
    mean = np.add.reduce(x * x, axis=-1, keepdims=True) * np.float32(1 / x.shape[-1])
    result: Floats = x / np.sqrt(mean + EPSILON)
    return result


def sigmoid(x: Floats) -> Floats:
    result: Floats = np.float32(1.0) / (np.float32(1.0) + np.exp(-x))
    return result


def log_softmax(logits: Floats) -> Floats:
    shifted: Floats = logits - logits.max()
    result: Floats = shifted - np.log(np.add.reduce(np.exp(shifted)))
    return result
