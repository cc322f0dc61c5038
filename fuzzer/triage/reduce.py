"""Reduction of a plan as data, to a form from which nothing can be taken.

Hypothesis does not shrink here: its shrinker works on the choices of a strategy, gets stuck in local minima where
two values have to change together, and cannot serve replayed plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scenarios.entitlement import self_contained
from scenarios.plans import Plan, compact, without
from scenarios.simplify import ASPECTS, Aspect, generous, shorter_segments

Shows = Callable[[Plan], int | None]
"""Runs a plan; the index of the step that is wrong in the way under reduction, or None."""


_OUTLINE = tuple(aspect for aspect in ASPECTS if aspect is not shorter_segments)


class Reduction:
    """Reduces one plan; ``tries`` counts the plans that were run for it."""

    def __init__(self, shows: Shows, *, out_of_time: Callable[[], bool] = lambda: False) -> None:
        self._shows = shows
        self._out_of_time = out_of_time
        self._refuted: set[Plan] = set()
        self._outlines: set[Plan] = set()
        self.tries = 0
        self.complete = False

    def reduce(self, plan: Plan) -> Plan:
        """The simplest plan found; ``complete`` says whether it is minimal or time ran out."""
        plan = self._exhausted_in(ASPECTS, self.outline(plan))
        self.complete = not self._out_of_time()
        return plan

    def outline(self, plan: Plan) -> Plan:
        """The simplest plan found with all its lengths generous; ``reduce`` goes on from what was tried for it."""
        plan = self._truncated(plan)
        if plan not in self._outlines:
            plan = self._exhausted_in(_OUTLINE, self._accepted(generous(plan)) or plan)
            self._outlines.add(plan)
        return plan

    def _exhausted_in(self, aspects: Sequence[Aspect], plan: Plan) -> Plan:
        while (simpler := self._simplified(plan, aspects)) is not None:
            plan = simpler
        return plan

    def _simplified(self, plan: Plan, aspects: Sequence[Aspect]) -> Plan | None:
        """One pass over some aspects; None when nothing can be simplified any more."""
        before = plan
        for aspect in aspects:
            plan = self._exhausted(plan, aspect)
        return plan if plan != before else None

    def _exhausted(self, plan: Plan, aspect: Aspect) -> Plan:
        while (simpler := self._first_accepted(plan, aspect)) is not None:
            plan = simpler
        return plan

    def _first_accepted(self, plan: Plan, aspect: Aspect) -> Plan | None:
        for candidate in aspect(plan):
            if self._out_of_time():
                return None
            if (accepted := self._accepted(candidate)) is not None:
                return accepted
        return None

    def _accepted(self, candidate: Plan) -> Plan | None:
        """The candidate, cut after its wrong step, if it still shows the bug."""
        candidate = compact(candidate)
        if not candidate.operations or candidate in self._refuted or not self_contained(candidate):
            return None
        self.tries += 1
        step = self._shows(candidate)
        if step is None:
            self._refuted.add(candidate)
            return None
        return compact(without(candidate, range(step + 1, len(candidate.operations))))

    def _truncated(self, plan: Plan) -> Plan:
        return self._accepted(plan) or plan
