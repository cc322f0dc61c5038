"""Coverage of a run: which operations ran, and in which situation each found the cache."""

from __future__ import annotations

from oracles.noise import Situation, tail_of
from oracles.observations import Done, Failure, Trace, ran_beside_another
from scenarios.operations import kind
from scenarios.plans import Plan


def tally(coverage: dict[str, dict[str, int]], plan: Plan, trace: Trace) -> None:
    """Count the steps of a run into ``coverage``, operation by situation."""
    for at, operation in enumerate(plan.operations[: len(trace.steps)]):
        row = coverage.setdefault(kind(operation), {})
        situation = _situation(trace, at)
        row[situation] = row.get(situation, 0) + 1


def _situation(trace: Trace, at: int) -> str:
    """How much of a prompt the server had to compute, in the classes that noise is measured in."""
    step = trace.steps[at]
    match step.outcome:
        case Failure():
            return "refused"
        case Done():
            return "done"
    if step.aborted:
        return "aborted"
    return str(Situation(tail_of(step.outcome.reused, step.outcome.computed), ran_beside_another(trace, at)))
