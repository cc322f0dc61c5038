"""Confirmation: a minimal plan run again from fresh state, and beside it the arms that must be right."""

from __future__ import annotations

import msgspec

from fuzzer.differential import Differential, Outcome
from fuzzer.triage.lab import Lab
from oracles.attribution import alone, control_arm
from oracles.evidence import Arm, Evidence, Repeats
from oracles.judgement import Suspect
from scenarios.plans import Plan

TRIALS = 5
_ARMS = 2


class Confirmation(msgspec.Struct, frozen=True):
    """The evidence and one run that shows the divergence."""

    evidence: Evidence
    witness: Outcome
    suspect: Suspect


def confirm(lab: Lab, plan: Plan, wrong: int, outcome: Outcome) -> Confirmation:
    """Gather the evidence on fresh targets; ``outcome`` is what the live one gave."""
    lab.expect(TRIALS + _ARMS)
    witnesses: list[tuple[Outcome, Suspect]] = []
    for _ in range(TRIALS):
        with lab.fresh() as fresh:
            again = fresh.run(plan)
        witnesses += [(again, suspect) for suspect in again.suspects if suspect.step == wrong]
    witness, suspect = witnesses[0] if witnesses else (outcome, outcome.suspects[0])
    evidence = Evidence(
        oracle=suspect.oracle,
        repeats=Repeats(len(witnesses), TRIALS),
        delta=suspect.delta,
        alone=_arm(lab, alone(plan, wrong), 0),
        control=_control(lab, plan, wrong),
        bypass=_bypass(lab.live, plan, wrong),
        reused=suspect.reused,
    )
    return Confirmation(evidence, witness, suspect)


def _arm(lab: Lab, plan: Plan, step: int) -> Arm:
    with lab.fresh() as fresh:
        return fresh.run(plan).arm(step)


def _control(lab: Lab, plan: Plan, wrong: int) -> Arm | None:
    arm = control_arm(plan, wrong)
    return None if arm is None else _arm(lab, arm, wrong)


def _bypass(live: Differential, plan: Plan, wrong: int) -> Arm | None:
    if not live.target.server.capabilities.bypass:
        return None
    return live.run(plan, reuse=False).arm(wrong)
