"""Lost reuse: a hit that was promised and did not come. Not a wrong answer, but a fault of the same bookkeeping."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from oracles.accounting import shared_with
from oracles.observations import Done, Step, Trace
from scenarios.operations import Complete, Operation, Restore, Save
from scenarios.plans import Plan, references, replaced

_LEAST = 4
"""Tokens in common below which nothing is promised."""


class Promise(StrEnum):
    """Why a hit had to come."""

    AGAIN = "asked again"
    """Right after a request of the same environment with most of the prompt the same."""
    RESTORED = "restored from a file"
    """Right after the state of such a request was restored into the slot; as much as without save and restore."""
    PINNED = "pinned to another slot"
    """After such a request lost its slot; as much as the server finds for a request that is not pinned."""


class Loss(msgspec.Struct, frozen=True):
    """A request that reused less than half of the ``tokens`` that were promised, or nothing when asked again."""

    step: int
    lender: int
    """The earlier step that the tokens are of."""
    tokens: int
    promise: Promise


def losses(plan: Plan, trace: Trace) -> list[Loss]:
    """The losses of a run, one a step; each still has to be tried with its ``control``, where there is one."""
    found = (_loss(plan.operations, trace, at) for at in range(1, min(len(plan.operations), len(trace.steps))))
    return [loss for loss in found if loss is not None]


def control(plan: Plan, loss: Loss) -> tuple[Plan, int] | None:
    """The plan without the pin, or the two requests alone, and the step that has to reuse more there."""
    if loss.promise is Promise.AGAIN:
        return None
    mine = _unpinned(plan.operations[loss.step])
    if loss.promise is Promise.PINNED:
        return replaced(plan, loss.step, mine), loss.step
    return Plan((_unpinned(plan.operations[loss.lender]), mine), plan.prologue), 1


def kept(loss: Loss, trace: Trace, step: int) -> bool:
    """Whether the control's run shows that more could be reused."""
    answer = trace.steps[step].observation
    return answer is not None and 2 * (answer.reused or 0) >= loss.tokens


def _loss(operations: Sequence[Operation], trace: Trace, at: int) -> Loss | None:
    mine = trace.steps[at]
    if mine.observation is None or mine.observation.reused is None or mine.environment is None:
        return None
    for promise, lender in (
        (Promise.AGAIN, _just_asked(operations, trace, at)),
        (Promise.RESTORED, _restored(operations, trace, at)),
        (Promise.PINNED, _pushed_out(operations, trace, at)),
    ):
        tokens = _lent(trace, lender, mine)
        if lender is not None and tokens is not None and mine.observation.reused < _expected(promise, tokens):
            return Loss(at, lender, tokens, promise)
    return None


def _expected(promise: Promise, tokens: int) -> float:
    """Tokens below which a promise is broken: without a control to compare with, only nothing at all is certain."""
    return 1 if promise is Promise.AGAIN else tokens / 2


def _lent(trace: Trace, lender: int | None, mine: Step) -> int | None:
    """Tokens that one request has to lend another; None for too few to be sure of."""
    if lender is None:
        return None
    other = trace.steps[lender]
    if other.observation is None or other.aborted or other.environment != mine.environment:
        return None
    shared = shared_with(mine, other)
    return shared if shared >= _LEAST and 2 * shared >= len(mine.prompt) else None


def _just_asked(operations: Sequence[Operation], trace: Trace, at: int) -> int | None:
    """The step before, unless that still runs or a pin brings this one into another slot."""
    if not isinstance(operations[at - 1], Complete):
        return None
    request, mine, before = operations[at], trace.steps[at].observation, trace.steps[at - 1].observation
    pinned_away = mine is not None and before is not None and mine.slot != before.slot
    return None if isinstance(request, Complete) and request.slot is not None and pinned_away else at - 1


def _restored(operations: Sequence[Operation], trace: Trace, at: int) -> int | None:
    """The request whose whole state the operation before step ``at`` restored into the slot that it ran in."""
    restore, mine = operations[at - 1], trace.steps[at].observation
    if not isinstance(restore, Restore) or mine is None or mine.slot != restore.slot or references(operations[at]):
        return None
    saved = next((step for step in reversed(range(at)) if _saves(operations[step], restore.file)), None)
    if saved is None or trace.steps[saved].outcome != trace.steps[at - 1].outcome:
        return None
    save = operations[saved]
    assert isinstance(save, Save)
    lender = _last_in_slot(trace, save.slot, range(saved))
    count = trace.steps[at - 1].outcome
    if lender is None or not isinstance(count, Done) or references(operations[lender]):
        return None
    return lender if (count.count or 0) >= len(trace.steps[lender].prompt) else None


def _saves(operation: Operation, file: int) -> bool:
    return isinstance(operation, Save) and operation.file == file


def _pushed_out(operations: Sequence[Operation], trace: Trace, at: int) -> int | None:
    """A request with the prompt of a pinned one, whose slot another request took over; the latest."""
    request, mine = operations[at], trace.steps[at]
    if not isinstance(request, Complete) or request.slot is None or not all(_plain(one) for one in operations[:at]):
        return None
    for lender in reversed(range(at)):
        slot = trace.steps[lender].observation
        if slot is None or _lent(trace, lender, mine) is None:
            continue
        later = _last_in_slot(trace, slot.slot, range(lender + 1, at))
        if later is not None and _lent(trace, later, mine) is None:
            return lender
    return None


def _unpinned(operation: Operation) -> Operation:
    return msgspec.structs.replace(operation, slot=None) if isinstance(operation, Complete) else operation


def _plain(operation: Operation) -> bool:
    return isinstance(operation, Complete)


def _last_in_slot(trace: Trace, slot: int | None, steps: range) -> int | None:
    for step in reversed(steps):
        observation = trace.steps[step].observation
        if observation is not None and observation.slot == slot:
            return step
    return None
