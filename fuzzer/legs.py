"""Legs of a campaign: stretches of rounds on a server with one setting."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec

from scenarios.scenario import Scenario

_FIRST = 16
_ROUNDS = 8


class Leg(msgspec.Struct, frozen=True):
    """``rounds`` rounds with the flags of ``setting`` (None: to the end)."""

    seed: int
    setting: tuple[str, ...]
    rounds: int | None
    scenarios: tuple[Scenario, ...]


def legs(scenarios: Sequence[Scenario], seed: int, *, can_start: bool) -> Iterator[Leg]:
    """The default setting first, then settings at random; the default alone where no other can be started.

    A leg without an end is followed by others all the same, should whoever runs it leave it early.
    """
    mine = tuple(scenarios)
    settings = _settings(scenarios)
    if not can_start:
        yield Leg(seed, (), None, mine)
        return
    rng = random.Random(seed)
    if () in settings:
        yield Leg(seed, (), _FIRST if len(settings) > 1 else None, mine)
    number = 0
    while True:
        number += 1
        yield Leg(seed + number * 7919, rng.choice(settings), _ROUNDS if len(settings) > 1 else None, mine)


def _settings(scenarios: Sequence[Scenario]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(setting for scenario in scenarios for setting in scenario.settings or ((),)))
