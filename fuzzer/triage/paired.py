"""Plan against control arm, alternately on fresh roots, until the sequential test decides."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fuzzer.differential import Differential
from fuzzer.lawful import same_reuse
from oracles.arms import control_arm
from oracles.evidence import Arm
from oracles.judgement import Oracle
from oracles.sequential import Outcome, Paired
from scenarios.plans import Plan

PAIRED = (Oracle.LOGPROBS, Oracle.TOKENS)
"""Oracles whose suspects rounding could explain."""


class _Control(msgspec.Struct, frozen=True):
    """A lawful plan and the step of it that stands for the wrong one."""

    plan: Plan
    step: int


def run_pairs(
    live: Differential, plan: Plan, wrong: int, reused: int | None, alpha: float, out_of_time: Callable[[], bool]
) -> Paired:
    """The pairs up to a decision, the end of their budget or of the time.

    Only arms of one shape are compared: a token computed alone on top of a cache rounds by more than a prompt computed
    in one piece, so that a control which reused less would make rounding look like a finding. Where the plan's own
    control arm reuses other counts, the same prompt on top of as much lawful reuse stands in; where that does too,
    the pair decides nothing.
    """
    controls = _controls(plan, wrong, reused)
    control = controls.pop(0)
    paired = Paired(stand_in=not controls)
    while not (paired.exhausted or out_of_time() or paired.outcome(alpha) is not Outcome.UNDECIDED):
        ours, theirs = live.run(plan).arm(wrong), live.run(control.plan).arm(control.step)
        if ours.delta is None or theirs.delta is None:
            break
        if _alike(ours, theirs):
            paired = paired.with_pair(ours.delta, theirs.delta, live.noise.unreached)
        elif controls and paired.pairs == 0:
            control, paired = controls.pop(0), msgspec.structs.replace(paired, stand_in=True)
        else:
            paired = paired.with_mismatch()
    return paired


def _alike(ours: Arm, theirs: Arm) -> bool:
    """Whether both computed a prompt of one length on top of as many reused tokens; so it is taken where none tells."""
    return (ours.reused, ours.computed) == (theirs.reused, theirs.computed)


def _controls(plan: Plan, wrong: int, reused: int | None) -> list[_Control]:
    """The control arm, if it is another plan, and the same prompt on top of as much lawful reuse."""
    arm = control_arm(plan, wrong)
    own = [_Control(arm, wrong)] if arm is not None else []
    return [*own, _Control(same_reuse(plan, wrong, reused or 0), 1)]
