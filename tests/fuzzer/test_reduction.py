"""Reduction ends, keeps what it reduces, and leaves nothing that could still go."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from making import SPACE, ask, asked, path, plan_of, plans

from fuzzer.triage.reduce import Reduction
from scenarios.environment import environment
from scenarios.operations import Await, Complete, Evict, Join, Start
from scenarios.plans import Plan, compact
from scenarios.prompts import common_prefix, prompt_tokens
from scenarios.simplify import candidates

Shows = Callable[[Plan], int | None]


def shared(plan: Plan, one: int, other: int) -> int:
    roots = range(100, 100 + plan.roots)
    prompts = [prompt_tokens(request.prompt, list(roots), SPACE) for request in asked(plan)]
    return common_prefix(prompts[one], prompts[other])


def scaled(request: Complete | Start) -> object:
    return environment(request.scales or ())


def stale(plan: Plan, *, least: int, gap: int) -> int | None:
    """A server that gives a request the state of an earlier one at other scales, evicted by ``gap`` other requests."""
    requests = asked(plan)
    for wrong in range(len(requests)):
        for donor in range(wrong - gap):
            if scaled(requests[donor]) != scaled(requests[wrong]) and shared(plan, donor, wrong) >= least:
                return wrong
    return None


def both_change(plan: Plan) -> int | None:
    """Two values that have to go together: donor and reuser of equal length, whatever it is."""
    requests = asked(plan)
    for wrong in range(1, len(requests)):
        if requests[wrong].prompt == requests[wrong - 1].prompt and scaled(requests[wrong]) != scaled(
            requests[wrong - 1]
        ):
            return wrong
    return None


def long_answer(plan: Plan) -> int | None:
    return next((at for at, request in enumerate(asked(plan)) if request.tokens >= 3), None)


def eleven_tokens(plan: Plan) -> int | None:
    return next((at for at, request in enumerate(asked(plan)) if request.prompt.length >= 11), None)


BUGS: dict[str, Shows] = {
    "stale": lambda plan: stale(plan, least=1, gap=0),
    "stale-evicted": lambda plan: stale(plan, least=3, gap=1),
    "stale-evicted-twice": lambda plan: stale(plan, least=1, gap=2),
    "both-change": both_change,
    "long-answer": long_answer,
    "eleven-tokens": eleven_tokens,
    "anything": lambda plan: 0,
}


def minimal(shows: Shows, plan: Plan) -> bool:
    simpler = {compact(candidate) for candidate in candidates(plan)} - {plan}
    return not [candidate for candidate in simpler if candidate.operations and shows(candidate) is not None]


@pytest.mark.parametrize("bug", BUGS)
@given(plan=plans)
def test_it_ends_at_a_minimal_plan_that_still_shows_it(bug: str, plan: Plan) -> None:
    shows = BUGS[bug]
    if shows(plan) is None:
        return
    reduction = Reduction(shows)
    reduced = reduction.reduce(plan)
    assert shows(reduced) == len(reduced.operations) - 1
    assert reduction.complete
    assert minimal(shows, reduced)
    assert reduction.tries < 3000


LONG = plan_of(
    ask(path(1, ("b", 3)), 0.5),
    ask(path(0, ("a", 9), ("b", 4)), 0.25, 0.5, tokens=4),
    ask(path(2, ("a", 9)), 1.0),
    ask(path(1, ("c", 9)), 0.0, 0.01, tokens=2),
    ask(path(0, ("a", 9), ("c", 7)), 0.25, 0.0, tokens=8),
    ask(path(0, ("a", 2)), 1.0),
)


@pytest.mark.parametrize(
    ("bug", "operations"),
    [("stale", 2), ("stale-evicted", 3), ("stale-evicted-twice", 4), ("long-answer", 1), ("eleven-tokens", 1)],
)
def test_it_ends_at_the_smallest_size(bug: str, operations: int) -> None:
    reduction = Reduction(BUGS[bug])
    assert len(reduction.reduce(LONG).operations) == operations
    assert reduction.tries < 200


def test_numbers_end_at_the_edge() -> None:
    (request,) = asked(Reduction(BUGS["eleven-tokens"]).reduce(LONG))
    assert request.prompt.length == 11
    (request,) = asked(Reduction(BUGS["long-answer"]).reduce(LONG))
    assert request.tokens == 3


def test_time_that_runs_out_leaves_a_plan_that_shows_it_and_says_so() -> None:
    tries = iter(range(1000))
    reduction = Reduction(BUGS["stale-evicted"], out_of_time=lambda: next(tries) > 5)
    reduced = reduction.reduce(LONG)
    assert BUGS["stale-evicted"](reduced) is not None
    assert not reduction.complete


@pytest.mark.parametrize("edge", [2, 3, 16, 17, 63])
def test_an_edge_is_found_by_halves(edge: int) -> None:
    def long_prompt(plan: Plan) -> int | None:
        return next((at for at, request in enumerate(asked(plan)) if request.prompt.length >= edge), None)

    reduction = Reduction(long_prompt)
    (request,) = asked(reduction.reduce(plan_of(ask(path(0, ("a", 200)), 0.0))))
    assert request.prompt.length == edge
    assert reduction.tries < 20


def test_what_ran_right_before_the_wrong_step_is_not_run_alone() -> None:
    ran: list[Plan] = []

    def shows(plan: Plan) -> int | None:
        ran.append(plan)
        return BUGS["stale"](plan)

    reduced = Reduction(shows).reduce(LONG)
    assert len(reduced.operations) == 2
    assert plan_of(*reduced.operations[:1]) not in ran


def test_what_goes_on_beside_a_wrong_answer_is_not_cut_away_with_what_comes_later() -> None:
    def evicted_while_in_use(plan: Plan) -> int | None:
        first = next((at for at, one in enumerate(plan.operations) if isinstance(one, Start)), None)
        return first if any(isinstance(one, Evict) for one in plan.operations[(first or 0) + 1 :]) else None

    lasting = Start(prompt=path(0, ("a", 24)), tokens=48)
    later = ask(path(1, ("a", 24)), 0.0)
    reduced = Reduction(evicted_while_in_use).reduce(plan_of(later, lasting, Await(1), Evict(4, 24), Join(1), later))
    assert [type(operation) for operation in reduced.operations] == [Start, Evict]


def test_no_plan_is_run_twice_in_vain() -> None:
    ran: list[Plan] = []

    def shows(plan: Plan) -> int | None:
        ran.append(plan)
        return BUGS["stale-evicted"](plan)

    Reduction(shows).reduce(LONG)
    refuted = [plan for plan in ran if BUGS["stale-evicted"](plan) is None]
    assert len(refuted) == len(set(refuted))


@pytest.mark.parametrize(("tokens", "length"), [(0, 1), (8 * 112, 127), (8 * 30, 31)])
def test_fillers_are_shortened_by_halves(tokens: int, length: int) -> None:
    def pushed_out(plan: Plan) -> int | None:
        filled = sum(one.requests * one.length for one in plan.operations if isinstance(one, Evict))
        last = len(plan.operations) - 1
        evicted = any(isinstance(one, Evict) and one.requests >= 8 for one in plan.operations)
        return last if evicted and filled >= tokens and isinstance(plan.operations[last], Complete) else None

    reduction = Reduction(pushed_out)
    reduced = reduction.reduce(plan_of(Evict(10, 127), ask(path(0, ("a", 24)), 0.0)))
    assert [one for one in reduced.operations if isinstance(one, Evict)] == [Evict(8, length)]
    assert reduction.complete


def collides(plan: Plan) -> int | None:
    """Two prompts whose tokens happen to have one hash: on a fresh server those of the fifth and the second root."""
    roots = [request.prompt.root for request in asked(plan)]
    return roots.index(4) if 4 in roots and 1 in roots[: roots.index(4)] else None


def test_roots_keep_their_numbers_where_their_tokens_matter() -> None:
    """What goes would give the others other tokens, and with another token there is no collision."""
    plan = plan_of(*(ask(path(root, ("a", 3))) for root in (0, 1, 2, 3, 4, 5)))
    reduced = Reduction(collides, renumbers=False).reduce(plan)
    assert [request.prompt for request in asked(reduced)] == [path(1), path(4)]
    assert len(Reduction(collides).reduce(plan).operations) == 5


def test_roots_are_numbered_anew_at_the_end_where_that_will_do() -> None:
    plan = plan_of(ask(path(2)), ask(path(4), 0.5), ask(path(4), 1.0))
    reduced = Reduction(both_change, renumbers=False).reduce(plan)
    assert {request.prompt.root for request in asked(reduced)} == {0}
