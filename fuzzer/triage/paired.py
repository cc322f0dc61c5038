"""Plan against control arm, alternately on fresh roots, until the sequential test decides."""

from __future__ import annotations

from collections.abc import Callable

from fuzzer.differential import Differential
from fuzzer.lawful import same_reuse
from oracles.arms import control_arm
from oracles.sequential import Outcome, Paired
from scenarios.plans import Plan


def run_pairs(
    live: Differential, plan: Plan, wrong: int, reused: int | None, alpha: float, out_of_time: Callable[[], bool]
) -> Paired:
    """The pairs up to a decision, the end of their budget or of the time."""
    control, step = _control(plan, wrong, reused)
    paired = Paired()
    while not (paired.exhausted or out_of_time() or paired.outcome(alpha) is not Outcome.UNDECIDED):
        plan_delta = live.run(plan).arm(wrong).delta
        control_delta = live.run(control).arm(step).delta
        if plan_delta is None or control_delta is None:
            break
        paired = paired.with_pair(plan_delta, control_delta)
    return paired


def _control(plan: Plan, wrong: int, reused: int | None) -> tuple[Plan, int]:
    """The control arm; for a plan of one environment, the same prompt on top of as much lawful reuse."""
    arm = control_arm(plan, wrong)
    return (arm, wrong) if arm is not None else (same_reuse(plan, wrong, reused or 0), 1)
