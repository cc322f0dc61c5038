"""A plan whose timing decides is run as often as it takes to tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle

import pytest
from making import ask, path, plan_of, trace

from fuzzer.differential import Outcome
from fuzzer.triage.trials import HALF, ONCE, Trials, beyond, trials_of, tried
from oracles.judgement import Oracle, Suspect
from scenarios.operations import Start
from scenarios.plans import Plan

SERIAL = plan_of(ask(path(0), 0.0))
OVERLAPPED = plan_of(Start(prompt=path(0), tokens=16), ask(path(1), 0.0))


def showing(pattern: Sequence[bool]) -> Callable[[], bool]:
    runs = cycle(pattern)
    return lambda: next(runs)


def test_a_serial_plan_is_run_once() -> None:
    assert trials_of(SERIAL, showing([True])) == ONCE
    assert trials_of(SERIAL, showing([False, True])) is None


@pytest.mark.parametrize(
    ("pattern", "trials"),
    [
        ([True], HALF),
        ([True, False], HALF),
        ([True, False, False, False], Trials(1, 10)),
        ([False] * 11 + [True], Trials(1, 12)),
        ([False], None),
    ],
)
def test_a_plan_that_overlaps_is_run_by_how_often_it_shows(pattern: list[bool], trials: Trials | None) -> None:
    assert trials_of(OVERLAPPED, showing(pattern)) == trials


@pytest.mark.parametrize(
    ("pattern", "trials", "shown", "runs"),
    [
        ([True], HALF, True, 2),
        ([False], HALF, False, 3),
        ([False, False, True], HALF, False, 4),
        ([False, True, False, True], HALF, True, 4),
        ([False, False, True], Trials(1, 10), True, 3),
        ([False], Trials(1, 10), False, 10),
    ],
)
def test_it_stops_as_soon_as_it_is_decided(pattern: list[bool], trials: Trials, shown: bool, runs: int) -> None:
    shows, asked = showing(pattern), []

    def run(plan: Plan) -> Outcome:
        asked.append(plan)
        suspects = [Suspect(1, Oracle.LOGPROBS)] if shows() else []
        return Outcome(plan, trace(), trace(), suspects)

    assert bool(tried(run, OVERLAPPED, Oracle.TOKENS, trials).suspects) is shown
    assert len(asked) == runs


def test_what_most_runs_do_not_show_is_rare() -> None:
    assert [trials.rare for trials in (ONCE, HALF, Trials(1, 2), Trials(1, 3), Trials(1, 12))] == [False] * 3 + [
        True
    ] * 2


@pytest.mark.parametrize(("least", "steps"), [(0.0, [0, 1, 2]), (0.5, [1, 2])])
def test_what_is_off_by_less_is_left_out(least: float, steps: list[int]) -> None:
    """Where nothing is asked for, a wrong token that no logprob explains stays; a failure always does."""
    suspects = [
        Suspect(0, Oracle.TOKENS, moved=0.0),
        Suspect(1, Oracle.LOGPROBS, moved=1.0),
        Suspect(2, Oracle.HEALTH),
    ]

    def run(plan: Plan) -> Outcome:
        return Outcome(plan, trace(), trace(), suspects)

    assert [suspect.step for suspect in beyond(least, run)(SERIAL).suspects] == steps
