"""Reach: which situations a plan brought the server into; what a run covered, and what generation steers towards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from oracles.observations import Done, Observation, Step, Trace, overlapped
from scenarios.operations import Abort, Operation
from scenarios.prompts import common_prefix


class Situation(StrEnum):
    """What a request met; the rare ones are where stale state is found."""

    COLD = "nothing reused"
    REUSED = "reused"
    FULL_HIT = "all but one token reused"
    CHANGED = "reused after another environment asked the same prefix"
    RETURNED = "reused after another prompt had the slot"
    RECYCLED = "cold in a slot that another prompt had"
    OVERLAPPED = "beside another request"
    AFTER_ABORT = "after an abort"
    UNTOLD = "reuse not told"
    DONE = "done"
    REFUSED = "refused"


RARE = (Situation.CHANGED, Situation.RETURNED, Situation.AFTER_ABORT, Situation.OVERLAPPED)
"""Situations that generation steers towards."""


def situations(operations: Sequence[Operation], trace: Trace) -> Iterator[tuple[int, Situation]]:
    """Pairs of step and situation; a step can be in several."""
    for at, step in enumerate(trace.steps):
        if isinstance(step.outcome, Observation):
            yield from ((at, situation) for situation in _of_request(operations, trace, at))
        else:
            yield at, Situation.DONE if isinstance(step.outcome, Done) else Situation.REFUSED


def _of_request(operations: Sequence[Operation], trace: Trace, at: int) -> Iterator[Situation]:
    step = trace.steps[at]
    yield from _of_reuse(trace.steps, at)
    if step.span is not None and any(overlapped(step, other) for other in trace.steps if other is not step):
        yield Situation.OVERLAPPED
    if any(isinstance(operation, Abort) for operation in operations[:at]):
        yield Situation.AFTER_ABORT


def _of_reuse(steps: Sequence[Step], at: int) -> Iterator[Situation]:
    answer = steps[at].outcome
    assert isinstance(answer, Observation)
    if answer.reused is None:
        yield Situation.UNTOLD
        return
    last = _last_in_slot(steps, at, answer.slot)
    left = last is not None and common_prefix(last.prompt, steps[at].prompt) < max(1, answer.reused)
    if answer.reused == 0:
        yield Situation.RECYCLED if left else Situation.COLD
        return
    yield Situation.FULL_HIT if answer.computed == 1 else Situation.REUSED
    if left:
        yield Situation.RETURNED
    if _asked_otherwise(steps, at, answer.reused):
        yield Situation.CHANGED


def _last_in_slot(steps: Sequence[Step], at: int, slot: int | None) -> Step | None:
    for step in reversed(steps[:at]):
        if isinstance(step.outcome, Observation) and step.outcome.slot == slot:
            return step
    return None


def _asked_otherwise(steps: Sequence[Step], at: int, reused: int) -> bool:
    """Whether another environment asked the reused prefix before."""
    mine = steps[at]
    return any(
        step.prompt and step.environment != mine.environment and common_prefix(step.prompt, mine.prompt) >= reused
        for step in steps[:at]
    )
