"""Legs of a campaign: stretches of rounds on a server with one setting."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count, zip_longest

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


def legs(
    scenarios: Sequence[Scenario], seed: int, *, can_start: bool, special: Sequence[Scenario] = ()
) -> Iterator[Leg]:
    """The default setting first, then each of the others before any again; the default where no other can be started.

    A leg without an end is followed by others all the same, should whoever runs it leave it early. ``special`` are
    scenarios that the server can only run with the settings that they name; each has short legs of its own.
    """
    mine = tuple(scenarios)
    settings = _settings(scenarios)
    own = [(setting, (scenario,)) for scenario in special for setting in scenario.settings]
    if not can_start:
        yield Leg(seed, (), None, mine)
        return
    rng = random.Random(seed)
    alone = len(settings) + len(own) == 1
    if () in settings:
        yield Leg(seed, (), None if alone else _FIRST, mine)
    everything = [Leg(seed, setting, None if alone else _ROUNDS, mine) for setting in settings]
    short = [Leg(seed, setting, None if alone else 1, one) for setting, one in own]
    ahead: list[Leg] = []
    for number in count(1):
        ahead = ahead or _shuffled(everything, short, rng)
        yield msgspec.structs.replace(ahead.pop(0), seed=seed + number * 7919)


def _shuffled(everything: Sequence[Leg], short: Sequence[Leg], rng: random.Random) -> list[Leg]:
    """Each leg once, the two sorts in turn: what nothing else comes to is over in a round, but some of it is slow."""
    pairs = zip_longest(rng.sample(short, len(short)), rng.sample(everything, len(everything)))
    return [leg for pair in pairs for leg in pair if leg is not None]


def _settings(scenarios: Sequence[Scenario]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(setting for scenario in scenarios for setting in scenario.settings or ((),)))
