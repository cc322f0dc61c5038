"""Bands of log probability: rounding moves what is certain by little and what is unlikely by much.

One server was seen to move near-certain tokens by 1e-7 and a token at -2.4 by 6.7e-2: a bound that fits the second is
blind on the first.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

_EDGES = (0.1, 1.0, 3.0, 8.0)
"""Nats below certainty at which a band ends and the next begins."""

BANDS = (
    f"above -{_EDGES[0]:g}",
    *(f"-{near:g} to -{far:g}" for near, far in pairwise(_EDGES)),
    f"below -{_EDGES[-1]:g}",
)
"""Names of the bands, the most certain first."""

Deltas = tuple[float, ...]
"""The largest |delta logprob|, in nats, among the tokens of each band; 0 for a band in which nothing moved."""

NOTHING: Deltas = (0.0,) * len(BANDS)


def band_of(logprob: float) -> int:
    """Index of the band that a log probability falls into."""
    return bisect_left(_EDGES, -logprob)


def widest(deltas: list[Deltas]) -> Deltas:
    """Band by band the largest of several."""
    return tuple(max(column) for column in zip(*deltas, strict=True)) if deltas else NOTHING
