"""What one step simpler means, aspect by aspect."""

from __future__ import annotations

import pytest
from hypothesis import given
from making import ask, asked, at_scales, path, plan_of, plans

from scenarios.capabilities import LASTING
from scenarios.operations import Abort, Complete, Reload, SetScales, Start, Unload
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment
from scenarios.simpler_numbers import GENEROUS, Aspect, Dial, fewer_tokens, generous, shorter_segments
from scenarios.simplify import (
    ASPECTS,
    candidates,
    fewer_operations,
    named_scales,
    plainer_requests,
    simpler_paths,
    simpler_scales,
)

P, Q = path(0, ("a", 5)), path(1, ("a", 5))


@pytest.mark.parametrize("aspect", ASPECTS, ids=lambda aspect: aspect.__name__)
@given(plan=plans)
def test_no_candidate_is_the_plan_itself(aspect: Aspect, plan: Plan) -> None:
    assert plan not in list(candidates(plan, [aspect]))


@given(plans)
def test_a_generous_plan_is_long_and_answers_short(plan: Plan) -> None:
    for request in asked(generous(plan, LASTING)):
        assert request.tokens == 1
        assert {segment.length for segment in request.prompt.segments} <= {GENEROUS}


def test_every_single_operation_can_go_and_half_of_them_at_once() -> None:
    plan = plan_of(*(ask(path(root)) for root in range(4)))
    sizes = [len(candidate.operations) for candidate in fewer_operations(plan)]
    assert sizes[0] == 2
    assert sizes.count(3) == 4


def test_shared_values_change_together_before_they_change_alone() -> None:
    plan = plan_of(ask(P, 0.25), ask(Q, 0.5), ask(P, 0.25))
    both_off = plan_of(ask(P, 0.0), ask(Q, 0.5), ask(P, 0.0))
    first_off = plan_of(ask(P, 0.0), ask(Q, 0.5), ask(P, 0.25))
    scales = list(simpler_scales(plan))
    assert scales.index(both_off) < scales.index(first_off)

    shorter = list(candidates(plan, [shorter_segments]))
    both = plan_of(ask(path(0, ("a", 1)), 0.25), ask(Q, 0.5), ask(path(0, ("a", 1)), 0.25))
    one = plan_of(ask(path(0, ("a", 1)), 0.25), ask(Q, 0.5), ask(P, 0.25))
    assert shorter.index(both) < shorter.index(one)


def test_scales_get_simpler_towards_zero_one_and_a_half() -> None:
    simpler = [plan_of(ask(P, scale)) for scale in (0.0, 1.0, 0.5)]
    assert list(dict.fromkeys(simpler_scales(plan_of(ask(P, 0.25))))) == simpler
    assert list(simpler_scales(plan_of(ask(P, 0.0)))) == []


def test_the_first_adapter_is_the_simplest() -> None:
    assert plan_of(ask(P, 1.0, 0.0)) in list(simpler_scales(plan_of(ask(P, 0.0, 1.0))))


def test_paths_lose_segments_and_take_over_earlier_ones() -> None:
    longer = path(0, ("a", 5), ("b", 2))
    simpler = list(simpler_paths(plan_of(ask(P), ask(longer))))
    assert plan_of(ask(P), ask(path(0, ("b", 2)))) in simpler
    assert plan_of(ask(P), ask(P)) in simpler


@given(plans)
def test_every_length_and_every_count_is_lowered_by_one(plan: Plan) -> None:
    """So that a plan that the reducer leaves is minimal in each number alone."""
    lengths = {segment.length for request in asked(plan) for segment in request.prompt.segments}
    lowered = list(candidates(plan, [shorter_segments, fewer_tokens]))
    if max(lengths, default=1) > 1 or any(request.tokens > 1 for request in asked(plan)):
        assert lowered
    for at, request in enumerate(asked(plan)):
        for where, segment in enumerate(request.prompt.segments):
            if segment.length > 1:
                assert any(_length(candidate, at, where) == segment.length - 1 for candidate in lowered)


def _length(plan: Plan, at: int, where: int) -> int:
    segments = asked(plan)[at].prompt.segments
    return segments[where].length if where < len(segments) else 0


def test_scales_that_were_left_out_are_named_and_the_global_ones_go() -> None:
    left_out = Complete(prompt=P, scales=None)
    plan = Plan((left_out, SetScales(at_scales(0.0, 1.0)), left_out), (SetScales(at_scales(0.5)),))
    assert list(named_scales(plan)) == [plan_of(ask(P, 0.5, 0.0), ask(P, 0.0, 1.0))]
    assert list(named_scales(plan_of(ask(P, 0.5)))) == []


def test_an_answer_that_a_prompt_goes_on_after_gives_way_to_tokens_of_its_own() -> None:
    grown = Prompt(1, (Segment("d", 2),), after=0, answer=3)
    plan = plan_of(ask(P, tokens=4), ask(grown))
    assert plan_of(ask(P, tokens=4), ask(path(0, ("a", 5), ("g", 3), ("d", 2)))) in list(simpler_paths(plan))


LONG = path(0, ("a", 100))


def test_what_others_run_beside_is_made_to_last_and_stays_so() -> None:
    plan = plan_of(Start(prompt=LONG, tokens=2), Abort(0), ask(Q, tokens=3), ask(LONG))
    lasting = generous(plan, LASTING)
    assert [(one.prompt, one.tokens) for one in asked(lasting)] == [
        (LONG, LASTING),
        (path(1, ("a", 100)), 1),
        (LONG, 1),
    ]
    lowered = list(candidates(lasting, [fewer_tokens, shorter_segments]))
    assert lowered
    for candidate in lowered:
        assert candidate.operations[0] == lasting.operations[0]
        assert candidate.operations[-1] == lasting.operations[-1]


def test_what_is_started_last_need_not_last() -> None:
    plan = plan_of(Start(prompt=Q, tokens=LASTING), Start(prompt=P, tokens=LASTING))
    shorter = [asked(candidate) for candidate in candidates(plan, [fewer_tokens, shorter_segments])]
    assert {(one.prompt, one.tokens) for one, _ in shorter} == {(Q, LASTING)}
    assert (path(0, ("a", 1)), LASTING) in [(other.prompt, other.tokens) for _, other in shorter]
    assert (P, 1) in [(other.prompt, other.tokens) for _, other in shorter]


@pytest.mark.parametrize(("value", "ends"), [(9, [1, 8]), (2, [1]), (1, [])])
def test_a_number_is_tried_at_its_least_and_at_one_less(value: int, ends: list[int]) -> None:
    dial = Dial(value, lambda number: plan_of(ask(P, tokens=number)))
    assert [request.tokens for plan in dial.ends() for request in asked(plan)] == ends


def test_weights_are_loaded_over_an_adapter_rather_than_after_it_was_unloaded() -> None:
    plan = plan_of(ask(P), Unload(0, 1), ask(P))
    assert plan_of(ask(P), Reload(0, 1), ask(P)) in list(candidates(plan, [plainer_requests]))
    over = plan_of(ask(P), Reload(0, 1), ask(P))
    assert all(Unload(0, 1) not in simpler.operations for simpler in candidates(over))
