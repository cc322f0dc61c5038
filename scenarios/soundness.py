"""Soundness of a plan that somebody else wrote: every number in range, every step spoken of there and of its kind.

Plans that we draw and reduce are sound by how they are made; a plan out of a file may be anything that its types allow.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from scenarios.operations import Await, Evict, Operation, Reference, Request, Start, kind
from scenarios.plans import Plan

_LARGEST = 9999
"""Of any index and any count; no server has that many slots, adapters or tokens an answer."""
_LONGEST = 1 << 17
"""Tokens of a prompt."""


def unsound(plan: Plan) -> str | None:
    """What is wrong with a plan, in a few words; None for one that can be run."""
    for operation in plan.prologue:
        if isinstance(operation, (*get_args(Request), *get_args(Reference), Evict)):
            return f"its prologue has a {kind(operation)}"
    for at, operation in enumerate(plan.operations):
        fault = _out_of_range(operation) or _out_of_place(plan, at, operation)
        if fault is not None:
            return f"step {at + 1}, {kind(operation)}, {fault}"
    if plan.roots > len(plan.operations):
        return "its roots are not numbered in order"
    return next((f"its prologue {fault}" for one in plan.prologue if (fault := _out_of_range(one))), None)


def _out_of_range(operation: Operation) -> str | None:
    odd = [number for number in _integers(msgspec.to_builtins(operation)) if not 0 <= number <= _LARGEST]
    if odd:
        return f"has the number {odd[0]}"
    if any(count < 1 for count in _counts(operation)):
        return "counts less than 1"
    if isinstance(operation, get_args(Request)) and operation.prompt.length > _LONGEST:
        return f"has a prompt of {operation.prompt.length} tokens"
    return None


def _integers(value: Any) -> list[int]:
    match value:
        case bool():
            return []
        case int():
            return [value]
        case list() | tuple():
            return [number for item in value for number in _integers(item)]
        case dict():
            return _integers(list(value.values()))
    return []


def _counts(operation: Operation) -> list[int]:
    match operation:
        case Evict(requests=number, length=length):
            return [number, length]
        case Await(tokens=tokens):
            return [tokens]
        case _ if isinstance(operation, get_args(Request)):
            return [operation.tokens, *(segment.length for segment in operation.prompt.segments)]
    return []


def _out_of_place(plan: Plan, at: int, operation: Operation) -> str | None:
    if isinstance(operation, get_args(Reference)):
        return _absent(plan, at, operation.of, Start)
    if isinstance(operation, get_args(Request)) and operation.prompt.after is not None:
        return _absent(plan, at, operation.prompt.after, get_args(Request))
    return None


def _absent(plan: Plan, at: int, step: int, kinds: type | tuple[type, ...]) -> str | None:
    if step < at and isinstance(plan.operations[step], kinds):
        return None
    return f"speaks of step {step + 1}, which is none that it could"
