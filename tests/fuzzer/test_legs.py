"""Legs of a campaign: settings, the short legs of what needs a setting, and what keeps a known bug away."""

from __future__ import annotations

import random
from itertools import islice
from typing import cast

import msgspec
import pytest

from fuzzer.legs import legs
from fuzzer.quieting import Quieting
from reports.record import FindingRecord, Mitigation
from scenarios.library import adapter_reload, adapter_scale, interleaving, pinned_slots, sleeping, weights_reload
from scenarios.library.catalogue import SCENARIOS
from scenarios.scenario import FALLS_ASLEEP

SWITCHES = {"--swa-full": ("--swa-full",), "--ctx-checkpoints 0": ("--ctx-checkpoints", "0")}


@pytest.mark.parametrize("seed", range(3))
def test_a_campaign_comes_by_every_setting(seed: int) -> None:
    able = [scenario for scenario in SCENARIOS if not scenario.control and FALLS_ASLEEP not in scenario.settings]
    wanted = {setting for scenario in able for setting in scenario.settings}
    drawn = list(islice(legs(able, seed, can_start=True, special=[sleeping.SCENARIO]), 100))
    assert drawn[0].setting == ()
    assert wanted | {("--sleep-idle-seconds", "1")} == {leg.setting for leg in drawn}


def test_what_nothing_else_comes_to_is_every_other_leg_after_the_default() -> None:
    special = [pinned_slots.SCENARIO, sleeping.SCENARIO]
    drawn = list(islice(legs([adapter_scale.SCENARIO, interleaving.SCENARIO], 1, can_start=True, special=special), 7))
    assert drawn[0].setting == ()
    short = [(leg.setting, leg.scenarios) for leg in drawn[1::2]]
    assert {scenarios for _, scenarios in short} == {(pinned_slots.SCENARIO,), (sleeping.SCENARIO,)}
    assert len(set(short)) == 3


@pytest.mark.parametrize("seed", range(3))
def test_no_setting_comes_again_before_all_of_them_came(seed: int) -> None:
    settings = {(), *interleaving.SCENARIO.settings}
    able = [adapter_scale.SCENARIO, interleaving.SCENARIO]
    drawn = list(islice(legs(able, seed, can_start=True), 1 + 2 * len(settings)))
    assert {leg.setting for leg in drawn[1 : 1 + len(settings)]} == settings
    assert {leg.setting for leg in drawn[1 + len(settings) :]} == settings


def test_what_needs_a_setting_runs_under_it_alone() -> None:
    drawn = list(islice(legs([interleaving.SCENARIO], 1, can_start=True, special=[sleeping.SCENARIO]), 40))
    asleep = [leg for leg in drawn if "--sleep-idle-seconds" in leg.setting]
    assert asleep
    assert {(leg.rounds, leg.scenarios) for leg in asleep} == {(1, (sleeping.SCENARIO,))}
    assert all(leg.scenarios == (interleaving.SCENARIO,) for leg in drawn if leg not in asleep)


@pytest.mark.parametrize("seed", range(3))
def test_every_scenario_has_its_turn_and_first_where_it_names_the_setting(seed: int) -> None:
    """A leg has eight rounds, and there are more scenarios: in the order of the catalogue the last never had a turn."""
    able = [one for one in SCENARIOS if not one.control and FALLS_ASLEEP not in one.settings]
    drawn = [leg for leg in islice(legs(able, seed, can_start=True), 60) if leg.rounds is not None]
    turns = {scenario.name for leg in drawn[1:] for scenario in leg.scenarios[: leg.rounds]}
    assert turns == {scenario.name for scenario in able}
    for leg in drawn[1:]:
        naming = [scenario.name for scenario in able if leg.setting in (scenario.settings or ((),))]
        assert {scenario.name for scenario in leg.scenarios[: len(naming)]} == set(naming)


ASLEEP = [sleeping.SCENARIO, weights_reload.SCENARIO, adapter_reload.SCENARIO]


@pytest.mark.parametrize("seed", range(3))
def test_scenarios_that_need_one_setting_take_turns(seed: int) -> None:
    """Three that are slow cost a campaign no more legs than one."""
    able = [adapter_scale.SCENARIO, interleaving.SCENARIO]
    alone = islice(legs(able, seed, can_start=True, special=[sleeping.SCENARIO]), 40)
    drawn = list(islice(legs(able, seed, can_start=True, special=ASLEEP), 40))
    slow = [leg.scenarios for leg in drawn if leg.setting == FALLS_ASLEEP]
    assert len(slow) == sum(leg.setting == FALLS_ASLEEP for leg in alone)
    assert set(slow[:3]) == {(scenario,) for scenario in ASLEEP}
    assert slow[3:6] == slow[:3]


def test_scenarios_of_one_setting_and_no_others_share_its_leg() -> None:
    (leg,) = islice(legs([], 1, can_start=True, special=ASLEEP), 1)
    assert (leg.setting, leg.rounds) == (FALLS_ASLEEP, None)
    assert {scenario.name for scenario in leg.scenarios} == {scenario.name for scenario in ASLEEP}


def test_one_setting_is_one_leg_unless_it_is_left_early() -> None:
    first, second = islice(legs([adapter_scale.SCENARIO], 1, can_start=True), 2)
    assert (first.setting, first.rounds, second.setting, second.rounds) == ((), None, (), None)
    assert first.seed != second.seed


def test_a_server_that_is_not_ours_keeps_its_setting() -> None:
    (leg,) = legs([pinned_slots.SCENARIO], 1, can_start=False)
    assert (leg.setting, leg.rounds) == ((), None)


class Part(msgspec.Struct):
    """All of a finding that decides how it is kept away."""

    necessary: list[str]
    mitigations: list[Mitigation]


def finding(*necessary: str, clean: tuple[str, ...]) -> FindingRecord:
    helps = [Mitigation(setting, setting in clean) for setting in SWITCHES]
    return cast("FindingRecord", Part(list(necessary), helps))


def test_a_bug_that_no_plan_can_avoid_is_switched_off() -> None:
    quieting = Quieting(SWITCHES)
    loud = finding("shared-prefix", clean=("--swa-full",))
    assert quieting.flags([loud], random.Random(1)) == ("--swa-full",)


def test_a_bug_that_plans_can_avoid_is_left_to_them() -> None:
    quieting = Quieting(SWITCHES)
    assert quieting.loud([finding("shared-prefix", "scale-change", clean=("--swa-full",))]) == []
    assert quieting.loud([finding("shared-prefix", clean=())]) == []


def test_a_switch_with_which_nothing_is_reused_is_not_used_again() -> None:
    quieting = Quieting(SWITCHES)
    loud = finding("shared-prefix", clean=tuple(SWITCHES))
    quieting.useless(("-np", "2", "--ctx-checkpoints", "0"))
    assert {quieting.flags([loud], random.Random(seed)) for seed in range(20)} == {("--swa-full",)}
