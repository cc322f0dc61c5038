"""Confirmation: a minimal plan run again from fresh state, and beside it the arms that must be right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from fuzzer.company import Seen
from fuzzer.differential import Differential, Outcome
from fuzzer.triage.lab import Lab
from fuzzer.triage.paired import PAIRED, run_pairs
from fuzzer.triage.trials import HALF, Trials
from oracles.arms import alone, control_arm, in_other_words, respelled
from oracles.evidence import Arm, Evidence, Others, Repeats
from oracles.judgement import Oracle, Suspect
from oracles.sequential import FALSE_ALARMS, Paired
from scenarios.entitlement import follows_global_scales
from scenarios.operations import Complete, Start
from scenarios.plans import Plan

TRIALS = 5
TIMING_TRIALS = 10
"""At most, of a plan that shows what it shows as often as not; a rarer one is run so many times more often."""
_ARMS = 2


class Fresh(Protocol):
    """A comparison against a target that nothing was asked of yet."""

    def run(self, plan: Plan) -> Outcome:
        """Run a plan on target and reference."""
        ...


class FreshTargets(Protocol):
    """A supply of such targets."""

    def fresh(self) -> AbstractContextManager[Fresh]:
        """The next one."""
        ...


class Noisy(msgspec.Struct, frozen=True):
    """What the pairs may spend: a false-alarm rate, and the time that is left."""

    alpha: float
    out_of_time: Callable[[], bool]


class Confirmation(msgspec.Struct, frozen=True):
    """The evidence and one run that shows the divergence."""

    evidence: Evidence
    witness: Outcome
    suspect: Suspect


def confirm(
    lab: Lab,
    plan: Plan,
    wrong: int,
    outcome: Outcome,
    trials: Trials,
    noisy: Noisy | None = None,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Confirmation:
    """Gather the evidence on fresh targets; ``outcome`` is what the live one gave.

    Where timing decides, there are fewer runs when time is up.

    On a target with noise, ``noisy`` says how the pairs of plan and control arm are to be run.
    """
    company = lab.live.target.company
    before = company.count()
    count = TIMING_TRIALS * trials.of * HALF.least // (HALF.of * trials.least) if plan.overlaps else TRIALS
    lab.expect(TRIALS + _ARMS)
    may_miss = plan.overlaps or noisy is not None
    runs, witnesses = runs_from_fresh_state(lab, plan, wrong, count, out_of_time, may_miss=may_miss)
    witness, suspect = _witness(witnesses, noisy) if witnesses else (outcome, outcome.suspects[0])
    lone = lab.alone(plan, wrong)
    other_words = None if lone.clean else _respelled(lab, plan, wrong)
    evidence = Evidence(
        oracle=suspect.oracle,
        repeats=Repeats(len(witnesses), runs),
        moved=suspect.moved,
        alone=lone,
        control=_control(lab, plan, wrong),
        bypass=_bypass(lab.live, plan, wrong),
        respelled=other_words,
        paired=_paired(lab.live, plan, wrong, suspect, noisy),
        alpha=noisy.alpha if noisy is not None else FALSE_ALARMS,
        timing=plan.overlaps,
        reused=suspect.reused,
        widest=lab.live.noise.bound(),
        unreached=lab.live.noise.unreached,
    )
    evidence = msgspec.structs.replace(evidence, others=_others(plan, before, company.count()))
    if other_words is not None and other_words.clean:
        suspect = msgspec.structs.replace(suspect, oracle=Oracle.METAMORPHIC)
    return Confirmation(evidence, witness, suspect)


def _witness(witnesses: Sequence[tuple[Outcome, Suspect]], noisy: Noisy | None) -> tuple[Outcome, Suspect]:
    """The first run that shows it; on a target with noise the one that shows it second best, as two runs do at least.

    Other tokens are off by more or less, and some of them by no more than rounding.
    """
    if noisy is None:
        return witnesses[0]
    return sorted(witnesses, key=lambda witness: -(witness[1].moved or 0.0))[:2][-1]


def _others(plan: Plan, before: Seen, after: Seen) -> Others:
    """What others did meanwhile; for a plan that follows global settings, anything that they changed in the run."""
    changes = after.changes if follows_global_scales(plan) else after.changes - before.changes
    return Others(requests=after.requests > before.requests, changes=changes > 0)


def _paired(live: Differential, plan: Plan, wrong: int, suspect: Suspect, noisy: Noisy | None) -> Paired | None:
    if noisy is None or suspect.oracle not in PAIRED:
        return None
    return run_pairs(live, plan, wrong, suspect.reused, noisy.alpha, noisy.out_of_time)


def runs_from_fresh_state(
    lab: FreshTargets, plan: Plan, wrong: int, count: int, out_of_time: Callable[[], bool], *, may_miss: bool
) -> tuple[int, list[tuple[Outcome, Suspect]]]:
    """How many runs there were, ``count`` at most, and those that showed it.

    What hangs on timing need not be shown more often than what does not. Where no run ``may_miss`` it, the first that
    does is the last.
    """
    witnesses: list[tuple[Outcome, Suspect]] = []
    for run in range(count):
        if plan.overlaps and run >= TRIALS and (len(witnesses) >= TRIALS or out_of_time()):
            return run, witnesses
        shown = _trial(lab, plan, wrong)
        witnesses += [shown] if shown is not None else []
        if shown is None and not may_miss:
            return run + 1, witnesses
    return count, witnesses


def _trial(lab: FreshTargets, plan: Plan, wrong: int) -> tuple[Outcome, Suspect] | None:
    with lab.fresh() as fresh:
        outcome = fresh.run(plan)
    return next(((outcome, suspect) for suspect in outcome.suspects if suspect.step == wrong), None)


def _control(lab: Lab, plan: Plan, wrong: int) -> Arm | None:
    arm = control_arm(plan, wrong)
    if arm is None:
        return None
    control = lab.arm(arm, wrong)
    # The plan itself shows its bug in other words too, which says nothing of lawful reuse.
    return None if not control.clean and in_other_words(arm, plan) else control


def _respelled(lab: Lab, plan: Plan, wrong: int) -> Arm | None:
    adapters = lab.live.target.server.capabilities.adapters
    lone = alone(plan, wrong)
    if lone is None or adapters == 0 or not isinstance(plan.operations[wrong], (Complete, Start)):
        return None
    spelled = respelled(lone[0], lone[1], adapters)
    return None if spelled == lone[0] else lab.arm(spelled, lone[1])


def _bypass(live: Differential, plan: Plan, wrong: int) -> Arm | None:
    if not live.target.server.capabilities.bypass:
        return None
    return live.run(plan, reuse=False).arm(wrong)
