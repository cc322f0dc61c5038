"""Plans are data: they survive a file, and taking from them leaves plans."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import ask, asked, at_scales, path, plan_of, plans

from scenarios.entitlement import changed_versions, entitlements
from scenarios.environment import environment
from scenarios.operations import Await, Join, Reload, Start, Unload
from scenarios.plans import Plan, compact, decode, encode, joined, without
from scenarios.soundness import unsound


@given(plans)
def test_a_plan_survives_a_file(plan: Plan) -> None:
    assert decode(encode(plan)) == plan


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"operations": 3}', '{"operations": [{"op": "rm -rf"}]}', "\x00"])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(text)


@given(plans, st.sets(st.integers(0, 5)))
def test_leaving_out(plan: Plan, steps: set[int]) -> None:
    left = without(plan, steps)
    assert list(left.operations) == [operation for at, operation in enumerate(plan.operations) if at not in steps]


@given(st.lists(plans, min_size=1, max_size=4))
def test_joined_plans_share_no_root(several: list[Plan]) -> None:
    whole = joined(several)
    assert len(whole.operations) == sum(len(plan.operations) for plan in several)
    assert whole.roots == sum(plan.roots for plan in several)
    taken: set[int] = set()
    requests = iter(asked(whole))
    for plan in several:
        own = {next(requests).prompt.root for _ in asked(plan)}
        assert not own & taken
        taken |= own


@given(plans)
def test_compact_numbers_roots_by_first_use(plan: Plan) -> None:
    tidy = compact(plan)
    roots = [request.prompt.root for request in asked(tidy)]
    assert list(dict.fromkeys(roots)) == list(range(tidy.roots))
    assert [a == b for a in roots for b in roots] == [
        one.prompt.root == other.prompt.root for one in asked(plan) for other in asked(plan)
    ]
    assert compact(tidy) == tidy


def test_environments_forget_zero_scales_and_order() -> None:
    assert environment(at_scales(0.0, 0.0)) == environment(())
    assert environment(at_scales(0.5, 0.0)) == environment(at_scales(0.5))
    assert environment(at_scales(0.5, 1.0)) == environment(at_scales(0.5, 1.0)[::-1])
    assert environment(at_scales(0.5, 0.0)) != environment(at_scales(0.0, 0.5))


def test_what_speaks_of_a_step_goes_with_it() -> None:
    started = Start(prompt=path(0, ("a", 3)), tokens=4)
    plan = plan_of(ask(path(1)), started, Await(1, 2), ask(path(2)), Join(1))
    assert without(plan, {0}) == plan_of(started, Await(0, 2), ask(path(2)), Join(0))
    assert without(plan, {1}) == plan_of(ask(path(1)), ask(path(2)))
    assert decode(encode(plan)) == plan


def test_an_empty_plan_needs_no_root() -> None:
    assert plan_of().roots == 0


@given(plans)
def test_what_we_draw_is_sound(plan: Plan) -> None:
    assert unsound(compact(plan)) is None


def test_what_others_write_need_not_be() -> None:
    started = Start(prompt=path(0, ("a", 3)), tokens=4)
    assert unsound(plan_of(started, Join(0))) is None
    assert unsound(plan_of(ask(path(0)), Join(0))) == "step 2, join, speaks of step 1, which is none that it could"
    assert unsound(plan_of(started, Join(1))) == "step 2, join, speaks of step 2, which is none that it could"


def test_an_adapter_that_was_unloaded_has_the_version_it_was_loaded_with() -> None:
    tuned = ask(path(0), 1.0)
    plan = plan_of(Reload(0, 1), tuned, Unload(0), tuned, Unload(0, 1), tuned)
    versions = [one.scales[0].version for one in entitlements(plan) if one is not None]
    assert versions == [1, 0, 1]
    assert changed_versions(plan) == [Unload(0, 0)]
    assert changed_versions(plan_of(Reload(0, 1), Unload(0))) == []
