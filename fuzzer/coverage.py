"""Coverage of a run: which operations ran, and which situations they met."""

from __future__ import annotations

from oracles.observations import Trace
from oracles.reach import situations
from scenarios.operations import kind
from scenarios.plans import Plan


def tally(coverage: dict[str, dict[str, int]], plan: Plan, trace: Trace) -> None:
    """Count the steps of a run into ``coverage``, operation by situation."""
    for at, situation in situations(plan.operations, trace):
        if at < len(plan.operations):
            row = coverage.setdefault(kind(plan.operations[at]), {})
            row[situation] = row.get(situation, 0) + 1
