"""Coverage of a run: which operations ran, and in which situation each found the cache."""

from __future__ import annotations

from oracles.noise import tail_of
from oracles.observations import Failure, Observation, Step, Trace
from scenarios.operations import kind
from scenarios.plans import Plan


def tally(coverage: dict[str, dict[str, int]], plan: Plan, trace: Trace) -> None:
    """Count the steps of a run into ``coverage``, operation by situation."""
    for operation, step in zip(plan.operations, trace.steps, strict=False):
        row = coverage.setdefault(kind(operation), {})
        situation = situation_of(step)
        row[situation] = row.get(situation, 0) + 1


def situation_of(step: Step) -> str:
    """How much of the prompt the server had to compute, in the classes that noise is measured in."""
    if isinstance(step.outcome, Failure):
        return "refused"
    assert isinstance(step.outcome, Observation)
    tail = tail_of(step.outcome.reused, step.outcome.computed)
    return "reuse not told" if tail is None else str(tail)
