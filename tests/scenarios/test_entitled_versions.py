"""What is loaded under a name counts from the moment it was loaded."""

from __future__ import annotations

import pytest

from scenarios.entitlement import changed_versions, entitlements, overwritten
from scenarios.environment import AdapterScale
from scenarios.operations import Complete, Operation, Reload, ReloadWeights, Restart, Restore, Save, Sleep, Unload
from scenarios.plans import Plan
from scenarios.prompts import Prompt

ASK = Complete(prompt=Prompt(0), scales=(AdapterScale(0, 1.0),))


def versions(plan: Plan) -> list[int]:
    """Of the adapter in each request."""
    return [environment.scales[0].version for environment in entitlements(plan) if environment is not None]


def test_unloading_brings_back_the_first_weights() -> None:
    plan = Plan((ASK, Reload(0, 1), ASK, Unload(0), ASK))
    assert versions(plan) == [0, 1, 0]
    assert changed_versions(plan) == []
    assert changed_versions(Plan(plan.operations[:3])) == [Reload(0, 0)]


def test_what_a_plan_loads_over_is_overwritten() -> None:
    other = Complete(prompt=Prompt(0), scales=(AdapterScale(1, 1.0),))
    off = Complete(prompt=Prompt(0), scales=(AdapterScale(0, 0.0),))
    plan = Plan((ASK, other, off, Reload(0, 1), ASK))
    assert overwritten(plan) == [True, False, False, False, False]
    assert overwritten(Plan((*plan.operations, Reload(0, 0), ASK))) == [False, False, False, False, True, False, False]
    assert overwritten(Plan((ASK, ReloadWeights(1), ASK))) == [True, False, False]


def test_first_weights_come_back_in_the_way_that_others_were_loaded() -> None:
    assert changed_versions(Plan((ASK, Unload(0, 1), ASK))) == [Unload(0, 0)]
    assert changed_versions(Plan((Unload(0, 1), Reload(0, 1), Reload(1, 1)))) == [Reload(0, 0), Reload(1, 0)]


@pytest.mark.parametrize(
    ("between", "judged"),
    [
        ((), True),
        ((ReloadWeights(0),), True),
        ((ReloadWeights(1),), False),
        ((Reload(0, 1),), False),
        ((ReloadWeights(1), ReloadWeights(0)), True),
        ((ReloadWeights(1), Restart()), True),
    ],
)
def test_what_other_versions_computed_and_a_slot_was_given_back_is_not_judged(
    between: tuple[Operation, ...], judged: bool
) -> None:
    plan = Plan((ASK, Save(0), *between, Restore(0), ASK, ASK))
    assert [environment is not None for environment in entitlements(plan)[-2:]] == [judged, judged]


@pytest.mark.parametrize("forgetting", [Sleep(), Restart()])
def test_a_server_that_forgets_its_slots_is_judged_again(forgetting: Operation) -> None:
    plan = Plan((ASK, Save(0), ReloadWeights(1), Restore(0), Save(0, 1), ASK, forgetting, ASK, Restore(0, 1), ASK))
    assert [environment is not None for environment in entitlements(plan)][5::2] == [False, True, False]
