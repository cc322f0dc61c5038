"""Coverage of a run: which operations ran, and which situations they met."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from oracles.observations import Trace
from oracles.reach import situations
from scenarios.operations import KINDS, kind
from scenarios.plans import Plan


def tally(coverage: dict[str, dict[str, int]], plan: Plan, trace: Trace) -> None:
    """Count the steps of a run into ``coverage``, operation by situation."""
    for at, situation in situations(plan.operations, trace):
        if at < len(plan.operations):
            row = coverage.setdefault(kind(plan.operations[at]), {})
            row[situation] = row.get(situation, 0) + 1


def left_out(exercised: Mapping[str, int], able: Collection[str]) -> dict[str, str]:
    """Every kind of operation that a run never did, and why, by what the server was ``able`` to do."""
    unable = "the server cannot do it as it was started or reached"
    return {name: "no plan came to it" if name in able else unable for name in KINDS if name not in exercised}
