"""What hangs on timing is proved by as many runs as it takes to show it, and by no more when time is up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle

import pytest
from making import ask, path, plan_of, trace

from fuzzer.differential import Outcome
from fuzzer.triage.confirm import TRIALS, runs_from_fresh_state
from oracles.judgement import Oracle, Suspect
from scenarios.operations import Start
from scenarios.plans import Plan

WRONG = 1
OVERLAPPED = plan_of(Start(prompt=path(0), tokens=48), ask(path(1), 0.0))
SERIAL = plan_of(ask(path(0), 0.0), ask(path(1), 0.0))


@dataclass
class ShowsAtTimes:
    """A supply of fresh servers of which one in so many answers wrongly."""

    one_in: int
    started: int = 0

    def __post_init__(self) -> None:
        self._shown = cycle([False] * (self.one_in - 1) + [True])

    @contextmanager
    def fresh(self) -> Iterator[ShowsAtTimes]:
        self.started += 1
        yield self

    def run(self, plan: Plan) -> Outcome:
        wrong = Suspect(step=WRONG, oracle=Oracle.LOGPROBS, position=0, delta=1.0, bound=1e-4, reused=0)
        return Outcome(plan, trace(), trace(), [wrong] if next(self._shown) else [])


@pytest.mark.parametrize(
    ("plan", "one_in", "late", "runs", "shown"),
    [
        (OVERLAPPED, 1, False, TRIALS, TRIALS),
        (OVERLAPPED, 3, False, 3 * TRIALS, TRIALS),
        (OVERLAPPED, 30, False, 40, 1),
        (OVERLAPPED, 3, True, TRIALS, 1),
        (SERIAL, 1, True, 40, 40),
        (SERIAL, 3, False, 1, 0),
    ],
)
def test_runs(plan: Plan, one_in: int, late: bool, runs: int, shown: int) -> None:
    lab = ShowsAtTimes(one_in)
    count, witnesses = runs_from_fresh_state(lab, plan, WRONG, 40, lambda: late, may_miss=plan.overlaps)
    assert (count, len(witnesses)) == (runs, shown)
    assert lab.started == runs
