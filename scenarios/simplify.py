"""How a plan gets simpler: for each aspect of it, the candidates one step simpler, most promising first.

A plan is minimal when no candidate of any aspect still shows what it showed. Values that several operations share
(the prompt of a donor and of its reuser, the environment of two requests) are first simplified together and only
then alone: alone, each would break the relation that the bug needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from scenarios.environment import AdapterScale
from scenarios.operations import Operation
from scenarios.plans import Plan, replaced, without
from scenarios.prompts import Prompt, Segment

Candidates = Iterator[Plan]
Aspect = Callable[[Plan], Candidates]

GENEROUS = 24
"""Segment length at which a plan is searched for operations that can go: long enough for every cache to bother."""

_SCALE_ORDER = (0.0, 1.0, 0.5)
"""From the simplest scale on; any other one is less simple than these."""


def generous(plan: Plan) -> Plan:
    """The plan with all segments at one generous length and one token an answer."""
    return _with_operations(plan, lambda operation: _ask(_stretch(operation, GENEROUS), 1))


def fewer_operations(plan: Plan) -> Candidates:
    """Leave out runs of operations, long runs first, from the end."""
    count = len(plan.operations)
    size = count // 2
    while size >= 1:
        for start in range(count - size, -1, -1):
            yield without(plan, range(start, start + size))
        size //= 2


def simpler_scales(plan: Plan) -> Candidates:
    """Simpler environments: equal ones together, then each adapter's scale of each request alone."""
    yield from _earlier_adapters(plan)
    spellings = list(dict.fromkeys(operation.scales for operation in plan.operations))
    for spelling in spellings:
        for simpler in _simpler_spellings(spelling):
            yield _with_operations(plan, lambda op, old=spelling, new=simpler: _respell(op, old, new))  # type: ignore[misc]
    for at, operation in enumerate(plan.operations):
        for simpler in _simpler_spellings(operation.scales):
            yield replaced(plan, at, msgspec.structs.replace(operation, scales=simpler))


def simpler_paths(plan: Plan) -> Candidates:
    """Shorter paths: everywhere, then in one request; and requests that ask what an earlier one asked."""
    for prompt in dict.fromkeys(operation.prompt for operation in plan.operations):
        for shorter in _dropped_segments(prompt):
            yield _with_operations(plan, lambda op, old=prompt, new=shorter: _reprompt(op, old, new))  # type: ignore[misc]
    for at, operation in enumerate(plan.operations):
        for shorter in _dropped_segments(operation.prompt):
            yield replaced(plan, at, msgspec.structs.replace(operation, prompt=shorter))
        for earlier in dict.fromkeys(other.prompt for other in plan.operations[:at]):
            if len(earlier.segments) < len(operation.prompt.segments):
                yield replaced(plan, at, msgspec.structs.replace(operation, prompt=earlier))


def fewer_tokens(plan: Plan) -> Candidates:
    """Ask for less: one token everywhere, then one token, half, or one token less of each."""
    if any(operation.tokens > 1 for operation in plan.operations):
        yield _with_operations(plan, lambda operation: _ask(operation, 1))
    for at, operation in enumerate(plan.operations):
        for tokens in _lower(operation.tokens):
            yield replaced(plan, at, _ask(operation, tokens))


def shorter_segments(plan: Plan) -> Candidates:
    """Lower lengths: all at once, each segment wherever it stands, then each segment of each request alone."""
    lengths = {segment.length for operation in plan.operations for segment in operation.prompt.segments}
    for length in _lower(max(lengths, default=1)):
        yield _with_operations(plan, lambda operation, most=length: _cut(operation, most))  # type: ignore[misc]
    for root, segment in dict.fromkeys(_segments(plan)):
        for length in _lower(segment.length):
            new = Segment(segment.name, length)
            yield _with_operations(plan, lambda op, r=root, old=segment, to=new: _resegment(op, r, old, to))  # type: ignore[misc]
    yield from _shorter_alone(plan)


def _shorter_alone(plan: Plan) -> Candidates:
    for at, operation in enumerate(plan.operations):
        for where, segment in enumerate(operation.prompt.segments):
            for length in _lower(segment.length):
                segments = list(operation.prompt.segments)
                segments[where] = Segment(segment.name, length)
                yield replaced(plan, at, _with_segments(operation, tuple(segments)))


ASPECTS: tuple[Aspect, ...] = (
    fewer_operations,
    simpler_scales,
    simpler_paths,
    fewer_tokens,
    shorter_segments,
)
"""In the order in which they are tried: operations first, lengths last."""


def _lower(value: int) -> Iterator[int]:
    """Smaller values down to 1: the smallest first, since most minima are small; then halves; then one less."""
    tried = dict.fromkeys([1, 2, 3, 4, 6, value // 2, value - 1])
    yield from (number for number in tried if 1 <= number < value)


def _simpler_spellings(scales: tuple[AdapterScale, ...]) -> Iterator[tuple[AdapterScale, ...]]:
    off = tuple(AdapterScale(scale.adapter, 0.0) for scale in scales)
    if scales != off:
        yield off
    for at, scale in enumerate(scales):
        for simpler in _simpler_scales(scale.scale):
            changed = (*scales[:at], AdapterScale(scale.adapter, simpler), *scales[at + 1 :])
            if changed != off:
                yield changed


def _earlier_adapters(plan: Plan) -> Candidates:
    """Swap an adapter that is used with an earlier one that is not, so that one bug has one form."""
    used = sorted({scale.adapter for operation in plan.operations for scale in operation.environment.scales})
    for wanted, adapter in enumerate(used):
        if wanted != adapter:
            yield _with_operations(plan, lambda op, one=wanted, other=adapter: _swapped(op, one, other))  # type: ignore[misc]


def _swapped(operation: Operation, one: int, other: int) -> Operation:
    scales = {scale.adapter: scale.scale for scale in operation.scales}
    turned = {**scales, one: scales.get(other, 0.0), other: scales.get(one, 0.0)}
    return msgspec.structs.replace(operation, scales=tuple(AdapterScale(*pair) for pair in sorted(turned.items())))


def _simpler_scales(scale: float) -> tuple[float, ...]:
    return _SCALE_ORDER[: _SCALE_ORDER.index(scale)] if scale in _SCALE_ORDER else _SCALE_ORDER


def _dropped_segments(prompt: Prompt) -> Iterator[Prompt]:
    for at in reversed(range(len(prompt.segments))):
        yield Prompt(prompt.root, (*prompt.segments[:at], *prompt.segments[at + 1 :]))


def _segments(plan: Plan) -> Iterator[tuple[int, Segment]]:
    for operation in plan.operations:
        yield from ((operation.prompt.root, segment) for segment in operation.prompt.segments)


def _with_operations(plan: Plan, change: Callable[[Operation], Operation]) -> Plan:
    return msgspec.structs.replace(plan, operations=tuple(change(operation) for operation in plan.operations))


def _with_segments(operation: Operation, segments: tuple[Segment, ...]) -> Operation:
    return msgspec.structs.replace(operation, prompt=Prompt(operation.prompt.root, segments))


def _stretch(operation: Operation, length: int) -> Operation:
    return _with_segments(operation, tuple(Segment(segment.name, length) for segment in operation.prompt.segments))


def _cut(operation: Operation, most: int) -> Operation:
    segments = tuple(Segment(segment.name, min(segment.length, most)) for segment in operation.prompt.segments)
    return _with_segments(operation, segments)


def _resegment(operation: Operation, root: int, old: Segment, new: Segment) -> Operation:
    if operation.prompt.root != root:
        return operation
    return _with_segments(operation, tuple(new if segment == old else segment for segment in operation.prompt.segments))


def _ask(operation: Operation, tokens: int) -> Operation:
    return msgspec.structs.replace(operation, tokens=tokens)


def _respell(operation: Operation, old: tuple[AdapterScale, ...], new: tuple[AdapterScale, ...]) -> Operation:
    return msgspec.structs.replace(operation, scales=new) if operation.scales == old else operation


def _reprompt(operation: Operation, old: Prompt, new: Prompt) -> Operation:
    return msgspec.structs.replace(operation, prompt=new) if operation.prompt == old else operation
