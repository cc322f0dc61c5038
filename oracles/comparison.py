"""Comparison of two answers to one request, on top-k lists of log probabilities.

A token that one list holds and the other does not is bounded, not dropped: its log probability in the other list is
at most that list's k-th value, so the difference is at least its own value less that one. (Comparing shared tokens
only shows 0 for real differences of 3 to 4.)

Differences are kept by band (``bands``): that of the likelier of the two values of a token.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from oracles.bands import NOTHING, Deltas, band_of, widest
from oracles.observations import Observation, Position, TokenLogprob

FLOOR = -20.0
"""Log probabilities below are taken as equal: servers write -3.4e38, or -inf, for what they count as impossible."""


class Comparison(msgspec.Struct, frozen=True):
    """How far two answers are apart, up to the first position at which their tokens differ."""

    positions: tuple[Deltas, ...]
    """How far each compared position is apart."""
    parted: int | None = None
    """First position at which the chosen tokens differ."""
    gap: float = 0.0
    """There: by how much the reference prefers its own token to the target's, in nats."""

    @property
    def deltas(self) -> tuple[float, ...]:
        """Largest |delta logprob| at each compared position, in nats."""
        return tuple(max(position) for position in self.positions)

    @property
    def delta(self) -> float:
        """Largest |delta logprob| over all compared positions."""
        return max(self.deltas, default=0.0)

    @property
    def by_band(self) -> Deltas:
        """Largest |delta logprob| of each band over all compared positions."""
        return widest(list(self.positions))

    def first_above(self, limits: Deltas, decoded: Deltas | None = None) -> int | None:
        """First position at which some band is further apart than its limit; those of later tokens are ``decoded``."""
        later = limits if decoded is None else decoded
        held = enumerate(self.positions)
        return next((at for at, deltas in held if _exceeds(deltas, later if at else limits)), None)


def _exceeds(deltas: Deltas, limits: Deltas) -> bool:
    return any(delta > limit for delta, limit in zip(deltas, limits, strict=True))


def compare(target: Observation, reference: Observation) -> Comparison:
    """Compare answers position by position, to their end or to the position at which their tokens part."""
    positions: list[Deltas] = []
    for at, (ours, theirs) in enumerate(zip(target.positions, reference.positions, strict=False)):
        positions.append(apart(ours.top, theirs.top))
        if ours.token != theirs.token:
            return Comparison(tuple(positions), at, preference(theirs, ours.token))
    return Comparison(tuple(positions))


def apart(ours: Sequence[TokenLogprob], theirs: Sequence[TokenLogprob]) -> Deltas:
    """Largest |delta logprob| over the tokens of two top-k lists, by band; a sound lower bound for missing tokens."""
    if ours == theirs or not ours or not theirs:
        return NOTHING
    left = {entry.id: _floored(entry.logprob) for entry in ours}
    right = {entry.id: _floored(entry.logprob) for entry in theirs}
    most = [0.0] * len(NOTHING)
    for likelier, delta in (*_shared(left, right), *_beyond(left, right), *_beyond(right, left)):
        band = band_of(likelier)
        most[band] = max(most[band], delta)
    return tuple(most)


def _shared(left: dict[int, float], right: dict[int, float]) -> list[tuple[float, float]]:
    """The likelier value and the difference of each token that both lists hold."""
    return [(max(left[token], right[token]), abs(left[token] - right[token])) for token in left.keys() & right.keys()]


def _beyond(mine: dict[int, float], other: dict[int, float]) -> list[tuple[float, float]]:
    """The same for tokens that only the first list holds, by how much they exceed the other's k-th value."""
    kth = min(other.values())
    return [(value, value - kth) for token, value in mine.items() if token not in other and value > kth]


def _floored(value: float) -> float:
    return max(value, FLOOR)


def preference(position: Position, token: int) -> float:
    """By how many nats a position prefers its likeliest token to ``token``; a lower bound where that is not listed."""
    values = {entry.id: entry.logprob for entry in position.top}
    if not values:
        return 0.0
    return max(values.values()) - values.get(token, min(values.values()))


def lead(position: Position) -> float | None:
    """By how many nats a position prefers its likeliest token to the next; None where it lists fewer than two."""
    values = sorted((entry.logprob for entry in position.top), reverse=True)
    return _floored(values[0]) - _floored(values[1]) if len(values) > 1 else None
