"""Noise: how far legal computation moves logprobs on this target, by the shape of the computation.

A request computed in one piece and the same request computed on top of reused state run through kernels of other
shapes, so they round differently, most of all when a single token is left to compute. The bound of a class is
measured on legal variation only, and a sample's maximum is no bound: see ``SAFETY``.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

SAFETY = 8.0
"""A bound is this many times the largest difference seen ..."""
LEAST = 1e-4
"""... and never below this: rounding in float32 reaches 4e-5 in a thousand requests where a probe of 200 saw 2e-5."""


class Tail(StrEnum):
    """How many prompt tokens were computed on top of what was reused."""

    COLD = "cold"
    ONE = "tail of 1"
    SHORT = "tail of 2 to 8"
    LONG = "tail over 8"


def tail_of(reused: int | None, computed: int | None) -> Tail | None:
    """The class of a request; None where the server does not tell."""
    if reused is None or computed is None:
        return None
    if reused == 0:
        return Tail.COLD
    if computed <= 1:
        return Tail.ONE
    return Tail.SHORT if computed <= 8 else Tail.LONG


class Bound(msgspec.Struct, frozen=True, rename={"tail": "class"}):
    """The largest difference that is still rounding, for one class of requests."""

    tail: Tail
    bound: float
    samples: int
    largest: float
    """Largest |delta logprob| among the samples."""


class Noise(msgspec.Struct, frozen=True):
    """The bounds of one target."""

    bounds: tuple[Bound, ...]

    def bound(self, tail: Tail | None) -> float:
        """The bound for a class; the widest of all for a class that was not measured."""
        for measured in self.bounds:
            if measured.tail == tail:
                return measured.bound
        return max((measured.bound for measured in self.bounds), default=LEAST)


def measured(samples: Iterable[tuple[Tail, float]]) -> Noise:
    """Noise from pairs of class and |delta logprob| of legal computations."""
    seen: dict[Tail, list[float]] = {}
    for tail, delta in samples:
        seen.setdefault(tail, []).append(delta)
    return Noise(tuple(_bound(tail, seen[tail]) for tail in Tail if tail in seen))


def _bound(tail: Tail, deltas: list[float]) -> Bound:
    largest = max(deltas)
    return Bound(tail, max(SAFETY * largest, LEAST), len(deltas), largest)
