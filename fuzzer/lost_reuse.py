"""Looks for promised hits that did not come, and reduces the first of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fuzzer.differential import Differential, Outcome, Pending
from fuzzer.servers.protocol import Server
from fuzzer.triage.account import NotPlain, wire_of
from fuzzer.triage.reduce import Reduction
from oracles.lost_reuse import Loss, Promise, control, kept, losses
from oracles.observations import Trace
from reports.record import LostReuse, WireRequest
from scenarios.plans import Plan
from scenarios.story import story_lines


class LostReuseWatch:
    """Knows what was lost in a run so far: the first plan of each promise, reduced, and how often it was broken."""

    def __init__(self, *, out_of_time: Callable[[], bool], elapsed: Callable[[], float]) -> None:
        self._out_of_time = out_of_time
        self._elapsed = elapsed
        self._kept: dict[Promise, LostReuse] = {}

    @property
    def kept(self) -> list[LostReuse]:
        """What a record says of lost reuse."""
        return list(self._kept.values())

    def look(self, differential: Differential, pending: Pending, setting: tuple[str, ...]) -> None:
        """Take note of what a plan lost on a server started with ``setting``."""
        for loss in _broken(differential, pending.plan, pending.ours):
            kept = self._kept.get(loss.promise)
            if kept is None:
                self._kept[loss.promise] = self._first(differential, pending.plan, loss, setting)
            else:
                kept.times += 1

    def _first(self, differential: Differential, plan: Plan, loss: Loss, setting: tuple[str, ...]) -> LostReuse:
        found_s = self._elapsed()
        last, outcome = loss, None

        def shows(candidate: Plan) -> int | None:
            nonlocal last, outcome
            ran = differential.begin(candidate).outcome()
            same = (one for one in _broken(differential, candidate, ran.ours) if one.promise is loss.promise)
            shown = next(same, None)
            if shown is None:
                return None
            last, outcome = shown, ran
            return shown.step

        # Lengths say nothing about it, and the time is better spent on wrong answers.
        minimal = Reduction(shows, out_of_time=self._out_of_time).outline(plan)
        return LostReuse(
            step=last.step + 1,
            tokens=last.tokens,
            story=story_lines(minimal),
            promise=loss.promise,
            prologue=minimal.prologue,
            plan=minimal.operations,
            settings=list(setting),
            wire=_wire(differential.target.server, outcome, minimal, last.step),
            found_s=found_s,
        )


def _wire(server: Server, outcome: Outcome | None, minimal: Plan, step: int) -> list[WireRequest]:
    """What to send to see it, from the run of the reduced plan."""
    if outcome is None or outcome.plan != minimal:
        return []
    try:
        return wire_of(server, outcome, step)
    except NotPlain:
        return []


def _broken(differential: Differential, plan: Plan, trace: Trace) -> Iterator[Loss]:
    """The losses of a run that no lawful choice of the server explains."""
    for loss in losses(plan, trace):
        arm = control(plan, loss)
        if arm is None or kept(loss, differential.run(arm[0]).ours, arm[1]):
            yield loss
