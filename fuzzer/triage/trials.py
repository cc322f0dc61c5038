"""Trials: how often a plan is run before it is judged, where timing decides what it shows."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from fuzzer.differential import Outcome
from oracles.judgement import Oracle
from scenarios.plans import Plan

Run = Callable[[Plan], Outcome]
"""Runs a plan on both servers, on fresh roots."""

_MOST = 12
_SURE = 2.3
"""Runs, in units of one over the rate, of which all are silent in one case of ten."""


class Trials(msgspec.Struct, frozen=True):
    """A plan shows what ``least`` of ``of`` runs show."""

    least: int
    of: int

    @property
    def rare(self) -> bool:
        """Whether most runs show nothing."""
        return 2 * self.least < self.of


ONCE = Trials(1, 1)
HALF = Trials(2, 4)
"""A plan in which requests run side by side, and which shows the divergence as often as not."""


def trials_of(plan: Plan, shows: Callable[[], bool]) -> Trials | None:
    """How often a plan has to be run, by how often it shows the divergence; None where it never does."""
    if not plan.overlaps:
        return ONCE if shows() else None
    seen = [shows() for _ in range(HALF.of)]
    if sum(seen) >= HALF.least:
        return HALF
    seen += [shows() for _ in range(_MOST - HALF.of)]
    if not any(seen):
        return None
    return Trials(1, min(_MOST, math.ceil(_SURE * len(seen) / sum(seen))))


def tried(run: Run, plan: Plan, oracle: Oracle, trials: Trials) -> Outcome:
    """A run that shows the divergence, if enough of them do; else one that does not, where there is one."""
    if not plan.overlaps:
        return run(plan)
    showing: list[Outcome] = []
    silent: list[Outcome] = []
    while len(showing) < trials.least and len(silent) <= trials.of - trials.least:
        outcome = run(plan)
        (silent if wrong_step(outcome, oracle) is None else showing).append(outcome)
    return showing[0] if len(showing) >= trials.least else silent[0]


def beyond(least: float, run: Run) -> Run:
    """The same runs, in which differences that do not exceed ``least`` are no suspects; with 0, all that were are.

    Where a target rounds, a plan that is off by far could otherwise be reduced to one that is off by rounding.
    """
    if least == 0:
        # A token chosen under a bias may be wrong although nothing moved as far as can be told.
        return run

    def run_beyond(plan: Plan) -> Outcome:
        outcome = run(plan)
        large = [suspect for suspect in outcome.suspects if suspect.moved is None or suspect.moved > least]
        return Outcome(outcome.plan, outcome.ours, outcome.theirs, large)

    return run_beyond


def family(oracle: Oracle) -> str:
    """What a divergence is followed as: a flipped token and a moved logprob are one way to be wrong."""
    return oracle if oracle in (Oracle.HEALTH, Oracle.ACCOUNTING) else "answer"


def wrong_step(outcome: Outcome, oracle: Oracle) -> int | None:
    """The first step that is wrong in the way of ``oracle``."""
    return next((one.step for one in outcome.suspects if family(one.oracle) == family(oracle)), None)
