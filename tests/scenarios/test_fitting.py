"""Plans taken to another server than the one they were found on."""

from __future__ import annotations

import msgspec
import pytest
from making import SPACE, ask, path, plan_of

from scenarios.capabilities import Capabilities
from scenarios.environment import AdapterScale
from scenarios.fitting import lacking, long_enough
from scenarios.operations import Complete, Erase, Reload, Save
from scenarios.plans import Plan

ABLE = Capabilities(SPACE, 4096, adapters=2, adapter_names=True, salts=True)
P = path(0, ("a", 5))


def test_nothing_is_lacking() -> None:
    assert lacking(plan_of(ask(P, 1.0), ask(P, 0.0, 1.0)), ABLE) is None


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (Plan((ask(P), Reload(0, 1))), "reload"),
        (plan_of(ask(P, 0.5)), "adapter a to 0.5"),
        (plan_of(Complete(prompt=P, scales=(AdapterScale(2, 1.0),))), "3 adapters"),
        (plan_of(Complete(prompt=P, slot=1)), "slots"),
    ],
)
def test_what_is_lacking_is_said(plan: Plan, words: str) -> None:
    assert words in (lacking(plan, ABLE) or "")


def test_tenant_keys_are_lacking() -> None:
    without = msgspec.structs.replace(ABLE, salts=False)
    assert "tenant keys" in (lacking(plan_of(Complete(prompt=P, salt="a")), without) or "")


def test_slots_are_lacking() -> None:
    """Asked all the same, a server says that there is no such slot, which looks like a fault of its own."""
    two = msgspec.structs.replace(ABLE, pins=True, slots=2, operations=(*ABLE.operations, "save", "erase"))
    assert lacking(Plan((Complete(prompt=P, slot=1), Save(1, 0))), two) is None
    for operation in (Complete(prompt=P, slot=2), Save(2, 0), Erase(2)):
        assert "names 3 slots" in (lacking(Plan((operation,)), two) or "")


def test_prompts_reach_over_a_block_and_share_what_they_shared() -> None:
    plan = long_enough(plan_of(ask(P), ask(path(0, ("a", 3), ("b", 2)))), 32)
    assert [operation.prompt for operation in plan.operations if isinstance(operation, Complete)] == [
        path(0, ("a", 69)),
        path(0, ("a", 67), ("b", 2)),
    ]


def test_long_prompts_stay_as_they_are() -> None:
    plan = plan_of(ask(path(0, ("a", 40))))
    assert long_enough(plan, 32) == plan
    assert long_enough(plan_of(ask(P)), 1) == plan_of(ask(P))
