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
    def moved(self) -> float:
        """How far rounding would have to move one logprob for it: to part tokens, each of two by half of the gap."""
        return max(self.delta, self.gap / 2)

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
    left, right = _floored(ours), _floored(theirs)
    most = list(NOTHING)
    _widen(most, left, right)
    _widen(most, {token: right[token] for token in right.keys() - left.keys()}, left)
    return tuple(most)


def _floored(entries: Sequence[TokenLogprob]) -> dict[int, float]:
    return {entry.id: value if (value := entry.logprob) > FLOOR else FLOOR for entry in entries}


def _widen(most: list[float], mine: dict[int, float], other: dict[int, float]) -> None:
    """Take in how far each token of ``mine`` is apart; one plain loop, since lists may hold a whole vocabulary."""
    kth = min(other.values())
    for token, value in mine.items():
        known = other.get(token, kth)
        if value >= known:
            band, delta = band_of(value), value - known
        elif token in other:
            band, delta = band_of(known), known - value
        else:
            continue
        if delta > most[band]:
            most[band] = delta


def preference(position: Position, token: int) -> float:
    """By how many nats a position prefers its likeliest token to ``token``; a lower bound where that is not listed."""
    values = {entry.id: entry.logprob for entry in position.top}
    if not values:
        return 0.0
    return max(values.values()) - values.get(token, min(values.values()))


def lead(position: Position) -> float | None:
    """By how many nats a position prefers its likeliest token to the next; None where it lists fewer than two."""
    values = sorted((entry.logprob for entry in position.top), reverse=True)
    return max(values[0], FLOOR) - max(values[1], FLOOR) if len(values) > 1 else None
