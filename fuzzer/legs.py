"""Legs of a campaign: stretches of rounds on a server with one setting."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
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
    scenarios that the server can only run with the settings that they name; each setting has short legs of its own, in
    which they take turns.
    """
    mine = tuple(scenarios)
    settings = _settings(scenarios)
    if not can_start:
        yield Leg(seed, (), None, mine)
        return
    rng = random.Random(seed)
    own = {setting: _naming(setting, special, rng) for setting in _settings(special)}
    alone = len(settings) + len(own) == 1
    if () in settings:
        yield Leg(seed, (), None if alone else _FIRST, mine)
    everything = [Leg(seed, setting, None if alone else _ROUNDS, mine) for setting in settings]
    ahead: list[Leg] = []
    turns = count()
    for number in count(1):
        ahead = ahead or _shuffled(everything, _short(seed, own, None if alone else next(turns)), rng)
        leg = ahead.pop(0)
        mixed = leg.scenarios if alone else _mixed(leg, rng)
        yield msgspec.structs.replace(leg, seed=seed + number * 7919, scenarios=mixed)


def _mixed(leg: Leg, rng: random.Random) -> tuple[Scenario, ...]:
    """The scenarios of a leg in any order, first those that name its setting.

    A leg has fewer rounds than there are scenarios: in one order for all, the last would never have a turn.
    """
    naming = _naming(leg.setting, leg.scenarios, rng)
    others = [scenario for scenario in leg.scenarios if scenario not in naming]
    return (*naming, *rng.sample(others, len(others)))


def _naming(setting: tuple[str, ...], scenarios: Sequence[Scenario], rng: random.Random) -> tuple[Scenario, ...]:
    """The scenarios that name a setting, in any order."""
    found = [scenario for scenario in scenarios if setting in (scenario.settings or ((),))]
    return tuple(rng.sample(found, len(found)))


def _short(seed: int, own: Mapping[tuple[str, ...], tuple[Scenario, ...]], turn: int | None) -> list[Leg]:
    """A leg for each setting with the scenario whose ``turn`` it is; without one, with all of them to the end."""
    if turn is None:
        return [Leg(seed, setting, None, scenarios) for setting, scenarios in own.items()]
    return [Leg(seed, setting, 1, (scenarios[turn % len(scenarios)],)) for setting, scenarios in own.items()]


def _shuffled(everything: Sequence[Leg], short: Sequence[Leg], rng: random.Random) -> list[Leg]:
    """Each leg once, the two sorts in turn: what nothing else comes to is over in a round, but some of it is slow."""
    pairs = zip_longest(rng.sample(short, len(short)), rng.sample(everything, len(everything)))
    return [leg for pair in pairs for leg in pair if leg is not None]


def _settings(scenarios: Sequence[Scenario]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(setting for scenario in scenarios for setting in scenario.settings or ((),)))
