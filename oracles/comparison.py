"""Comparison of two answers to one request, on top-k lists of log probabilities.

A token that one list holds and the other does not is bounded, not dropped: its log probability in the other list is
at most that list's k-th value, so the difference is at least its own value less that one. (Comparing shared tokens
only shows 0 for real differences of 3 to 4.)
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from oracles.observations import Observation, Position, TokenLogprob

FLOOR = -20.0
"""Log probabilities below are taken as equal: servers write -3.4e38, or -inf, for what they count as impossible."""


class Comparison(msgspec.Struct, frozen=True):
    """How far two answers are apart, up to the first position at which their tokens differ."""

    deltas: tuple[float, ...]
    """Largest |delta logprob| at each compared position, in nats."""
    parted: int | None = None
    """First position at which the chosen tokens differ."""
    gap: float = 0.0
    """There: by how much the reference prefers its own token to the target's, in nats."""

    @property
    def delta(self) -> float:
        """Largest |delta logprob| over all compared positions."""
        return max(self.deltas, default=0.0)

    def first_above(self, bound: float, decoded: float | None = None) -> int | None:
        """First position whose distributions differ by more than ``bound``, after the first one than ``decoded``."""
        later = bound if decoded is None else decoded
        return next((at for at, delta in enumerate(self.deltas) if delta > (later if at else bound)), None)


def compare(target: Observation, reference: Observation) -> Comparison:
    """Compare answers position by position, to their end or to the position at which their tokens part."""
    deltas: list[float] = []
    for at, (ours, theirs) in enumerate(zip(target.positions, reference.positions, strict=False)):
        deltas.append(largest_delta(ours.top, theirs.top))
        if ours.token != theirs.token:
            return Comparison(tuple(deltas), at, preference(theirs, ours.token))
    return Comparison(tuple(deltas))


def largest_delta(ours: Sequence[TokenLogprob], theirs: Sequence[TokenLogprob]) -> float:
    """Largest |delta logprob| over the tokens of two top-k lists; a sound lower bound for missing tokens."""
    if ours == theirs or not ours or not theirs:
        return 0.0
    left = {entry.id: entry.logprob for entry in ours}
    right = {entry.id: entry.logprob for entry in theirs}
    return max(_apart(left, right), _beyond(left, right), _beyond(right, left))


def _apart(left: dict[int, float], right: dict[int, float]) -> float:
    shared = left.keys() & right.keys()
    return max((abs(_floored(left[token]) - _floored(right[token])) for token in shared), default=0.0)


def _beyond(mine: dict[int, float], other: dict[int, float]) -> float:
    kth = _floored(min(other.values()))
    return max((_floored(value) - kth for token, value in mine.items() if token not in other), default=0.0)


def _floored(value: float) -> float:
    return max(value, FLOOR)


def preference(position: Position, token: int) -> float:
    """By how many nats a position prefers its likeliest token to ``token``; a lower bound where that is not listed."""
    values = {entry.id: entry.logprob for entry in position.top}
    if not values:
        return 0.0
    return max(values.values()) - values.get(token, min(values.values()))
