"""Swarm: each round draws from a random subset of what is possible.

A bug that hides when everything is mixed shows when only two things are on, so a round fixes few environments, few
lengths and few roots, and the next round fixes others.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from scenarios.capabilities import Capabilities, lengths_that_matter
from scenarios.environment import AdapterScale

SCALES = (0.0, 0.01, 0.5, 1.0)
"""Off, nearly off, half, full."""

Spelling = tuple[AdapterScale, ...]


class Profile(msgspec.Struct, frozen=True):
    """What the plans of one round are made of."""

    roots: int
    lengths: tuple[int, ...]
    """Of segments."""
    spellings: tuple[Spelling, ...]
    """Adapter scales as requests name them."""
    answers: tuple[int, ...]
    """Tokens asked for."""
    most: int
    """Operations a plan may have."""


def profile(rng: random.Random, capabilities: Capabilities, spellings: Sequence[Spelling]) -> Profile:
    """A random profile that draws environments from ``spellings``."""
    special = lengths_that_matter(capabilities)
    small = rng.sample(range(1, 25), 3)
    return Profile(
        roots=rng.choice((1, 2, 2, 3)),
        lengths=tuple(sorted({*small, *rng.sample(special, min(len(special), rng.choice((0, 0, 1))))})),
        spellings=tuple(rng.sample(list(spellings), min(len(spellings), rng.choice((2, 2, 3, 4))))),
        answers=tuple(rng.sample((1, 1, 2, 4, 8), 2)),
        most=rng.choice((4, 6, 8)),
    )


def explicit_spellings(adapters: int) -> list[Spelling]:
    """Every adapter named, each at one of ``SCALES``; at most two of them on at once."""
    spellings: list[Spelling] = []
    for first in range(max(adapters, 1)):
        for second in range(first, max(adapters, 1)):
            spellings += _pair(adapters, first, second)
    return list(dict.fromkeys(spellings))


def _pair(adapters: int, first: int, second: int) -> list[Spelling]:
    return [
        tuple(AdapterScale(at, {first: one, second: other}.get(at, 0.0)) for at in range(adapters))
        for one in SCALES
        for other in SCALES
    ]
