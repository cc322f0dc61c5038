"""Noise: how far legal computation moves logprobs on this target, by the shape of the computation.

A request computed in one piece and the same request computed on top of reused state run through kernels of other
shapes, so they round differently, most of all when a single token is left to compute; a request computed in a batch
with others rounds differently again. The bound of a class is measured on legal variation only, and a sample's maximum
is no bound: see ``SAFETY``.
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
    UNKNOWN = "reuse not told"


def tail_of(reused: int | None, computed: int | None) -> Tail:
    """The class of a request by what the server says of its reuse."""
    if reused is None or computed is None:
        return Tail.UNKNOWN
    if reused == 0:
        return Tail.COLD
    if computed <= 1:
        return Tail.ONE
    return Tail.SHORT if computed <= 8 else Tail.LONG


class Situation(msgspec.Struct, frozen=True):
    """The class of a computation: what it reused, and whether it ran beside others."""

    tail: Tail
    beside: bool = False

    def __str__(self) -> str:
        return f"{self.tail}, overlapped" if self.beside else str(self.tail)


class Bound(msgspec.Struct, frozen=True, rename={"situation": "class"}):
    """The largest difference that is still rounding, for one class of requests."""

    situation: str
    bound: float
    samples: int
    largest: float
    """Largest |delta logprob| among the samples."""


class Noise(msgspec.Struct, frozen=True):
    """The bounds of one target."""

    bounds: tuple[Bound, ...]

    def bound(self, situation: Situation | None = None) -> float:
        """The bound of a class; for one that was not measured, the widest of those that could stand for it."""
        name = str(situation)
        for known in self.bounds:
            if known.situation == name:
                return known.bound
        return max((known.bound for known in self.bounds), default=LEAST)

    def decoded(self, situation: Situation) -> float:
        """The bound of an answer's later tokens: whatever the prompt's class, each was computed as a tail of one."""
        return max(self.bound(situation), self.bound(Situation(Tail.ONE, situation.beside)))

    def widened(self, samples: Iterable[tuple[Situation, float]]) -> Noise:
        """These bounds with further samples of legal computation taken in."""
        seen = {known.situation: known for known in self.bounds}
        for situation, delta in samples:
            known = seen.get(str(situation), Bound(str(situation), LEAST, 0, 0.0))
            largest = max(known.largest, delta)
            seen[known.situation] = Bound(known.situation, _safe(largest), known.samples + 1, largest)
        return Noise(tuple(seen[name] for name in _ORDER if name in seen))


def measured(samples: Iterable[tuple[Situation, float]]) -> Noise:
    """Noise from pairs of class and |delta logprob| of legal computations."""
    return Noise(()).widened(samples)


def _safe(largest: float) -> float:
    return max(SAFETY * largest, LEAST)


_ORDER = [str(Situation(tail, beside)) for beside in (False, True) for tail in Tail]
