"""Plans are data: they survive a file, and taking from them leaves plans."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import ask, path, plan_of, plans

from scenarios.plans import Plan, compact, decode, encode, joined, without


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
    operations = iter(whole.operations)
    for plan in several:
        own = {next(operations).prompt.root for _ in plan.operations}
        assert not own & taken
        taken |= own


@given(plans)
def test_compact_numbers_roots_by_first_use(plan: Plan) -> None:
    tidy = compact(plan)
    roots = [operation.prompt.root for operation in tidy.operations]
    assert list(dict.fromkeys(roots)) == list(range(tidy.roots))
    assert [a == b for a in roots for b in roots] == [
        one.prompt.root == other.prompt.root for one in plan.operations for other in plan.operations
    ]
    assert compact(tidy) == tidy


def test_environments_forget_zero_scales_and_order() -> None:
    assert ask(path(0), 0.0, 0.0).environment == ask(path(0)).environment
    assert ask(path(0), 0.5, 0.0).environment == ask(path(0), 0.5).environment
    assert ask(path(0), 0.5, 0.0).environment != ask(path(0), 0.0, 0.5).environment


def test_an_empty_plan_needs_no_root() -> None:
    assert plan_of().roots == 0
