"""Noise: how far legal computation moves logprobs on this target, by the shape of the computation.

A request computed in one piece and the same request computed on top of reused state run through kernels of other
shapes, so they round differently, most of all when a single token is left to compute; a request computed in a batch
with others rounds differently again. The bound of a class is measured on legal variation only, and a sample's maximum
is no bound: see ``SAFETY``. Where enough samples moved in a band of log probability (``bands``), it has a bound of its
own, never wider than that of its class.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from oracles.bands import BANDS, NOTHING, Deltas, widest

SAFETY = 8.0
"""A bound is this many times the largest difference seen ..."""
CAP = 0.6
"""... but, beyond this, no more than twice the largest: eight times the rounding of a quantised model, 0.4, would hide
another adapter's whole effect, 1 to 3. Noise so large sends every suspect through the paired test, which does not
mistake rounding for a finding (``oracles.sequential``)."""
LEAST = 1e-4
"""No bound is below this: rounding in float32 reaches 4e-5 in a thousand requests where a probe of 200 saw 2e-5."""
ENOUGH = 20
"""Samples that have to have moved in a band before it is held to a bound of its own. Bit-identical ones tell nothing of
how rounding spreads over the bands, so that exact numerics stay with the bound of the class."""
FEW = 10
"""A class of fewer samples is held to the widest bound of all: three long tails may round to nothing where the next
moves by 6e-3 (measured on a tiny dense model in default numerics)."""


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


class BandBound(msgspec.Struct, frozen=True):
    """The same for the tokens of one band of log probability."""

    band: str
    bound: float
    samples: int
    """Requests in which a token of the band moved at all."""
    largest: float

    @property
    def known(self) -> bool:
        """Whether it rests on enough samples to be a bound."""
        return self.samples >= ENOUGH


class Bound(msgspec.Struct, frozen=True, rename={"situation": "class"}):
    """The largest difference that is still rounding, for one class of requests."""

    situation: str
    bound: float
    samples: int
    largest: float
    """Largest |delta logprob| among the samples."""
    bands: tuple[BandBound, ...] = ()
    """One for each band, the most certain first; none where nothing ever moved."""

    @property
    def limits(self) -> Deltas:
        """The bound of each band; the class's own where a band has too few samples."""
        if not self.bands:
            return (self.bound,) * len(BANDS)
        return tuple(band.bound if band.known else self.bound for band in self.bands)

    def with_sample(self, deltas: Deltas) -> Bound:
        """The bound with one more sample of legal computation taken in."""
        largest = max(self.largest, *deltas)
        bands = self.bands or tuple(BandBound(name, LEAST, 0, 0.0) for name in BANDS)
        grown = tuple(_with_delta(band, delta) for band, delta in zip(bands, deltas, strict=True))
        return Bound(self.situation, safe(largest), self.samples + 1, largest, grown if any(deltas) else self.bands)


def _with_delta(band: BandBound, delta: float) -> BandBound:
    if delta == 0:
        return band
    largest = max(band.largest, delta)
    return BandBound(band.band, safe(largest), band.samples + 1, largest)


class Noise(msgspec.Struct, frozen=True):
    """The bounds of one target."""

    bounds: tuple[Bound, ...]
    elsewhere: float = 0.0
    """Largest |delta logprob| that legal computation gave under other settings of the target.

    Where numbers are kept in 16 bits, most requests are computed alike to 1e-6, and one in some dozens is off by 1e-2,
    a rounding having fallen to the other side: what one setting did not show in a hundred requests, another did.
    """

    def bound(self, situation: Situation | None = None) -> float:
        """The bound of a class; for one that was not measured, the widest of those that could stand for it."""
        known = self._of(situation)
        if known is not None:
            return known.bound
        return max(safe(self.elsewhere), *(one.bound for one in self.bounds), LEAST)

    @property
    def unreached(self) -> float:
        """A difference that rounding comes nowhere near: sixteen times the largest that any legal computation showed.

        Those are hundreds of samples, so that two runs of one plan are not beyond it by rounding. Where hardly any
        showed, some may come with company or with shapes that were not measured: so it is twice the cap at least.
        """
        return 2 * max(CAP, self.bound(), SAFETY * max(self.largest, self.elsewhere))

    @property
    def largest(self) -> float:
        """The largest |delta logprob| of any legal computation seen."""
        return max((known.largest for known in self.bounds), default=0.0)

    def limits(self, situation: Situation) -> Deltas:
        """The bound of each band in a class."""
        known = self._of(situation)
        return known.limits if known is not None else (self.bound(),) * len(NOTHING)

    def bound_at(self, situation: Situation, position: int) -> float:
        """The bound at a position of the answer: whatever the prompt's class, later tokens are each a tail of one."""
        later = self.bound(Situation(Tail.ONE, situation.beside))
        return max(self.bound(situation), later) if position else self.bound(situation)

    def limits_at(self, situation: Situation, position: int) -> Deltas:
        """The same for each band."""
        later = self.limits(Situation(Tail.ONE, situation.beside))
        return widest([self.limits(situation), later]) if position else self.limits(situation)

    def widened(self, samples: Iterable[tuple[Situation, Deltas]]) -> Noise:
        """These bounds with further samples of legal computation taken in."""
        seen = {known.situation: known for known in self.bounds}
        for situation, deltas in samples:
            known = seen.get(str(situation), Bound(str(situation), LEAST, 0, 0.0))
            seen[known.situation] = known.with_sample(deltas)
        grown = held(tuple(seen[name] for name in CLASSES if name in seen))
        return msgspec.structs.replace(grown, elsewhere=self.elsewhere)

    def _of(self, situation: Situation | None) -> Bound | None:
        name = str(situation)
        return next((known for known in self.bounds if known.situation == name), None)


def held(bounds: tuple[Bound, ...]) -> Noise:
    """Noise with each class at the bound that its samples, or where they are few those of all classes, allow."""
    most = safe(max((known.largest for known in bounds), default=0.0))
    return Noise(
        tuple(
            msgspec.structs.replace(known, bound=safe(known.largest) if known.samples >= FEW else most)
            for known in bounds
        )
    )


def measured(samples: Iterable[tuple[Situation, Deltas]]) -> Noise:
    """Noise from pairs of class and |delta logprob| of legal computations."""
    return Noise(()).widened(samples)


def safe(largest: float) -> float:
    """The bound that the largest difference seen allows."""
    return max(min(SAFETY * largest, max(CAP, 2 * largest)), LEAST)


CLASSES = [str(Situation(tail, beside)) for beside in (False, True) for tail in Tail]
"""Names of the classes, in the order in which they are shown."""
