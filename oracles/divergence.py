"""Jensen-Shannon divergence of two distributions of which only the likeliest tokens are known.

|delta logprob| weighs a token at one in a million like the one that is chosen; the divergence weighs by probability,
and so says how different two answers would read. The mean of ``p ln(2p / (p + q))`` and its counterpart, summed over
all tokens; between 0 and ln 2 nats (Lin, IEEE Transactions on Information Theory 37, 1991).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from oracles.observations import TokenLogprob

MOST = math.log(2)


class JensenShannon(msgspec.Struct, frozen=True):
    """Bounds of a divergence, in nats; they meet where both lists hold the whole vocabulary."""

    least: float
    most: float


def jensen_shannon(ours: Sequence[TokenLogprob], theirs: Sequence[TokenLogprob]) -> JensenShannon | None:
    """Sound bounds from two top-k lists; None where one is empty.

    In the lower bound, what the lists do not share is one token, since merging tokens never moves distributions apart;
    or each token of one list is as likely on the other side as its last entry allows, whichever is more. In the upper
    bound it has no token in common.
    """
    if not ours or not theirs:
        return None
    left = {entry.id: math.exp(entry.logprob) for entry in ours}
    right = {entry.id: math.exp(entry.logprob) for entry in theirs}
    shared = left.keys() & right.keys()
    known = sum(_term(left[token], right[token]) for token in shared)
    rest = [max(0.0, 1 - sum(side[token] for token in shared)) for side in (left, right)]
    parted = _parted(left, right) + _parted(right, left)
    return JensenShannon(max(0.0, known + max(_term(*rest), parted)), min(MOST, max(0.0, known + sum(rest) / 2 * MOST)))


def _parted(mine: dict[int, float], other: dict[int, float]) -> float:
    """The least that tokens of one list only contribute."""
    last = min(other.values())
    return sum(_term(p, min(p, last)) for token, p in mine.items() if token not in other)


def _term(p: float, q: float) -> float:
    return (_half(p, q) + _half(q, p)) / 2


def _half(p: float, q: float) -> float:
    return p * math.log(2 * p / (p + q)) if p > 0 else 0.0
