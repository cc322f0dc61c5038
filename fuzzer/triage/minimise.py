"""From the plan that diverged to a minimal one: found again, in outline, to its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from fuzzer.differential import Differential, Outcome
from fuzzer.triage.lab import Lab
from fuzzer.triage.reduce import Reduction
from fuzzer.triage.trials import HALF, ONCE, Run, Trials, beyond, trials_of, tried, wrong_step
from oracles.judgement import Oracle
from scenarios.plans import Plan, joined
from scenarios.simpler_numbers import generous

_HISTORY_STEPS = (1, 8, 64, 2000)
_SPARES = 2
"""Servers started ahead while plans are reduced on fresh ones: a start takes far longer than a plan."""


class Minimal(msgspec.Struct, frozen=True):
    """A reduced plan, with the run that shows it."""

    outcome: Outcome
    wrong: int
    complete: bool
    """False where time ran out before nothing more could be taken."""
    requests: int
    """Sent to targets while reducing."""

    @property
    def plan(self) -> Plan:
        """The reduced plan."""
        return self.outcome.plan


class Recurrence:
    """A divergence that came back: the plan that shows it, and how that is run."""

    def __init__(
        self,
        live: Differential,
        run: Run,
        shown: Outcome,
        oracle: Oracle,
        trials: Trials,
        out_of_time: Callable[[], bool],
        *,
        least: float,
        fresh: bool = False,
    ) -> None:
        self.trials = trials
        self.fresh = fresh
        """Whether it is reduced on servers that nothing was asked of yet."""
        self._least = least
        self._live = live
        self._sent = live.counts.target
        self.run = beyond(least, run)
        self._first = self._shown = shown
        self._oracle = oracle
        self._out_of_time = out_of_time
        self._reduction = Reduction(
            self._shows,
            out_of_time=out_of_time,
            lasting=live.target.server.capabilities.lasting,
            renumbers=not fresh,
        )

    def outline(self) -> Minimal | None:
        """Reduced in everything but lengths: enough to tell which bug it is, at a part of the cost."""
        return self._ended(self._reduction.outline(self._shown.plan))

    def minimal(self) -> Minimal | None:
        """Reduced to its end."""
        return self._ended(self._reduction.reduce(self._shown.plan))

    def from_the_start(self, run: Run) -> Recurrence:
        """The divergence as it first came back, to be reduced by runs on servers that nothing was asked of yet."""
        return Recurrence(
            self._live, run, self._first, self._oracle, self.trials, self._out_of_time, least=self._least, fresh=True
        )

    def shown_by(self, run: Run) -> bool:
        """Whether the plan as it is by now shows the divergence elsewhere."""
        run = beyond(self._least, run)
        return wrong_step(tried(run, self._shown.plan, self._oracle, self.trials), self._oracle) is not None

    def _shows(self, plan: Plan) -> int | None:
        outcome = tried(self.run, plan, self._oracle, self.trials)
        step = wrong_step(outcome, self._oracle)
        if step is not None:
            self._shown = outcome
        return step

    def _ended(self, plan: Plan) -> Minimal | None:
        if self._shown.plan != plan:
            again = tried(self.run, plan, self._oracle, self.trials)
            # Where timing decides, the plan may be one that nothing but a cut made, which shows it more rarely.
            kept = plan.overlaps and wrong_step(again, self._oracle) is None
            self._shown = self._shown if kept else again
        wrong = wrong_step(self._shown, self._oracle)
        if wrong is None:
            return None
        complete = self._reduction.complete and self._shown.plan == plan
        return Minimal(self._shown, wrong, complete, self._live.counts.target - self._sent)


def on_live(lab: Lab, outcome: Outcome, out_of_time: Callable[[], bool], least: float) -> Recurrence | None:
    """The divergence of ``outcome`` shown again on the live target, by more than ``least``."""
    shown: list[Recurrence] = []
    for plan in _ways(outcome.plan, lab.live.target.server.capabilities.lasting):
        found = _recurring(lab, lab.live.run, plan, outcome.suspects[0].oracle, out_of_time, least)
        shown += [found] if found is not None else []
        if found is not None and found.trials in (ONCE, HALF):
            # No other way shows it more often.
            break
    return max(shown, key=lambda one: one.trials.least / one.trials.of, default=None)


def _ways(plan: Plan, lasting: int) -> list[Plan]:
    """The plan, and where timing decides also with what others run beside made to last: every trial costs a run."""
    stretched = generous(plan, lasting)
    return [plan, stretched] if plan.overlaps and stretched != plan else [plan]


def _recurring(
    lab: Lab,
    run: Run,
    plan: Plan,
    oracle: Oracle,
    out_of_time: Callable[[], bool],
    least: float,
    *,
    fresh: bool = False,
) -> Recurrence | None:
    run = beyond(least, run)
    shown: Outcome | None = None

    def shows() -> bool:
        nonlocal shown
        again = run(plan)
        found = wrong_step(again, oracle) is not None
        shown = again if found else shown
        return found

    trials = trials_of(plan, shows)
    if trials is None or shown is None:
        return None
    return Recurrence(lab.live, run, shown, oracle, trials, out_of_time, least=least, fresh=fresh)


def after_history(
    lab: Lab, outcome: Outcome, history: list[Plan], out_of_time: Callable[[], bool], least: float
) -> Recurrence | None:
    """A plan that fails only after the plans before it: those replayed on a fresh server, all of it to be reduced."""
    oracle = outcome.suspects[0].oracle
    for count in _HISTORY_STEPS:
        if out_of_time() or not lab.has_fresh:
            return None
        plan = joined([*history[-count:], outcome.plan])
        found = _recurring(lab, partial(on_fresh, lab), plan, oracle, out_of_time, least, fresh=True)
        if found is not None:
            return found
        if count >= len(history):
            return None
    return None


def on_both(lab: Lab, plan: Plan) -> Outcome:
    """Run a plan on the live target, which is quick, and again on a fresh one if it shows something there."""
    outcome = lab.live.run(plan)
    return on_fresh(lab, plan) if outcome.suspects else outcome


def on_fresh(lab: Lab, plan: Plan) -> Outcome:
    """Run a plan on a server that nothing was asked of yet; the next such ones are being started meanwhile."""
    with lab.fresh() as fresh:
        lab.expect(_SPARES)
        return fresh.run(plan)
