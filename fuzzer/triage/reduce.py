"""Reduction of a plan as data, to a form from which nothing can be taken.

Hypothesis does not shrink here: its shrinker works on the choices of a strategy, gets stuck in local minima where
two values have to change together, and cannot serve replayed plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from scenarios.capabilities import LASTING
from scenarios.entitlement import self_contained
from scenarios.operations import Start
from scenarios.plans import Plan, compact, ended_by, without
from scenarios.simpler_numbers import Aspect, Dial, generous, no_longer, shorter_segments
from scenarios.simplify import ASPECTS

Shows = Callable[[Plan], int | None]
"""Runs a plan; the index of the step that is wrong in the way under reduction, or None."""


_OUTLINE = tuple(aspect for aspect in ASPECTS if aspect is not shorter_segments)


class Reduction:
    """Reduces one plan; ``tries`` counts the plans that were run for it.

    Answers of ``lasting`` tokens are long enough for others to be asked beside them. Roots keep their numbers to the
    last unless it ``renumbers`` them, and so on a fresh server their tokens, which a collision of hashes hangs on.
    """

    def __init__(
        self,
        shows: Shows,
        *,
        out_of_time: Callable[[], bool] = lambda: False,
        lasting: int = LASTING,
        renumbers: bool = True,
    ) -> None:
        self._shows = shows
        self._lasting = lasting
        self._renumbers = renumbers
        self._out_of_time = out_of_time
        self._refuted: set[Plan] = set()
        self._outlines: set[Plan] = set()
        self.tries = 0
        self.complete = False

    def reduce(self, plan: Plan) -> Plan:
        """The simplest plan found; ``complete`` says whether it is minimal or time ran out."""
        plan = self._truncated(plan)
        if plan not in self._outlines:
            plan = self._swept(self._stretched(plan), _OUTLINE)
        plan = self._exhausted(plan, ASPECTS)
        plan = self._accepted(compact(plan), plan) or plan
        self.complete = not self._out_of_time()
        return plan

    def outline(self, plan: Plan) -> Plan:
        """The simplest plan found with all its lengths generous; ``reduce`` goes on from what was tried for it."""
        plan = self._truncated(plan)
        if plan not in self._outlines:
            plan = self._exhausted(self._stretched(plan), _OUTLINE)
            self._outlines.add(plan)
        return plan

    def _stretched(self, plan: Plan) -> Plan:
        """With lengths that leave nothing to luck, and answers no longer than it takes, if that will do."""
        stretched = generous(plan, self._lasting)
        short = no_longer(stretched, self._lasting)
        return self._accepted(short, plan) or self._accepted(stretched, plan) or plan

    def _exhausted(self, plan: Plan, aspects: Sequence[Aspect]) -> Plan:
        """Swept until a whole sweep changes nothing, which is what makes it minimal."""
        while (simpler := self._swept(plan, aspects)) != plan:
            plan = simpler
        return plan

    def _swept(self, plan: Plan, aspects: Sequence[Aspect]) -> Plan:
        """Every step of every aspect tried once; what is refused before another is taken is left to the next sweep."""
        for aspect in aspects:
            at = 0
            while (found := self._first_accepted(plan, aspect, at)) is not None:
                plan, at = found
        return plan

    def _first_accepted(self, plan: Plan, aspect: Aspect, start: int) -> tuple[Plan, int] | None:
        """The first plan from step ``start`` of an aspect on that shows the bug, and the step that led to it."""
        for at, step in enumerate(islice(aspect(plan), start, None), start):
            if self._out_of_time():
                return None
            simpler = self._lowest(step, plan) if isinstance(step, Dial) else self._accepted(step, plan)
            if simpler is not None:
                return simpler, at
        return None

    def _lowest(self, dial: Dial, plan: Plan) -> Plan | None:
        """The plan with a number at the edge where the bug still shows; None where not even one less does."""
        if dial.value <= dial.least:
            return None
        if (lowest := self._accepted(dial.at(dial.least), plan)) is not None:
            return lowest
        refused, shown = dial.least, dial.value - 1
        lowest = self._accepted(dial.at(shown), plan) if shown > refused else None
        while lowest is not None and shown - refused > 1 and not self._out_of_time():
            middle = (refused + shown) // 2
            lower = self._accepted(dial.at(middle), plan)
            refused, shown = (middle, shown) if lower is None else (refused, middle)
            lowest = lower or lowest
        return lowest

    def _accepted(self, candidate: Plan, plan: Plan | None = None) -> Plan | None:
        """The candidate, cut after its wrong answer, if it still shows the bug, as ``plan`` did that it was made of."""
        candidate = self._numbered(candidate)
        if not candidate.operations or candidate in self._refuted or not self_contained(candidate):
            return None
        if candidate == plan or (plan is not None and _begins(candidate, plan)):
            return None
        self.tries += 1
        step = self._shows(candidate)
        if step is None:
            self._refuted.add(candidate)
            return None
        return self._numbered(without(candidate, range(_answered(candidate, step) + 1, len(candidate.operations))))

    def _numbered(self, plan: Plan) -> Plan:
        return compact(plan) if self._renumbers else plan

    def _truncated(self, plan: Plan) -> Plan:
        return self._accepted(plan) or plan


def _answered(plan: Plan, step: int) -> int:
    """The step by which the answer to a request is there: what comes later has no part in it."""
    if not isinstance(plan.operations[step], Start):
        return step
    end = ended_by(plan.operations, step)
    return len(plan.operations) - 1 if end is None else end


def _begins(candidate: Plan, plan: Plan) -> bool:
    """Whether the candidate is what ``plan`` does before its wrong step, which was right when that ran."""
    before = plan.operations[: len(candidate.operations)]
    return not plan.overlaps and candidate.prologue == plan.prologue and candidate.operations == before
