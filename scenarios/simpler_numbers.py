"""The numbers of a plan made lower: lengths of prompts, tokens asked for and awaited.

A request that others run beside keeps its lengths: how long it lasts is no value that a bug depends on, and the shorter
it is, the more luck the overlap needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial

import msgspec

from scenarios.operations import Await, Complete, Operation, Start
from scenarios.plans import Plan, changed, replaced, requests, with_prompt
from scenarios.prompts import Segment

Candidates = Iterator[Plan]


class Dial(msgspec.Struct, frozen=True):
    """A number in a plan that can be lowered: what it is, the least that it may be, the plan with another in its place.

    Where neither the least nor one less shows the bug, nothing in between is tried: numbers that matter are edges.
    """

    value: int
    at: Callable[[int], Plan]
    least: int = 1

    def ends(self) -> Candidates:
        """The least first, then one less."""
        ends = dict.fromkeys((self.least, self.value - 1))
        yield from (self.at(number) for number in ends if self.least <= number < self.value)


Steps = Iterator[Plan | Dial]
Aspect = Callable[[Plan], Steps]
GENEROUS = 24
"""Segment length at which a plan is searched for operations that can go: long enough for every cache to bother."""


def generous(plan: Plan, lasting: int) -> Plan:
    """The plan with all segments at one generous length and one token an answer; what others run beside lasts.

    That is ``lasting`` tokens at least.
    """
    length = max((segment.length for _, segment in _lasting(plan)), default=0)
    return changed(plan, lambda request: _stretch(request, max(GENEROUS, length), lasting))


def no_longer(plan: Plan, lasting: int) -> Plan:
    """The plan with no answer of more tokens than ``lasting``: each costs a decoding step of both servers."""
    return changed(plan, lambda request: _ask(request, min(lasting, request.tokens)))


def fewer_tokens(plan: Plan) -> Steps:
    """Ask for less: one token everywhere, then fewer of each; await fewer. But not of what others run beside."""
    if any(_ask_once(request) != request for _, request in requests(plan)):
        yield changed(plan, _ask_once)
    beside = _started_before_others(plan)
    for at, operation in enumerate(plan.operations):
        if isinstance(operation, (Complete, Start, Await)) and at not in beside:
            yield Dial(operation.tokens, partial(_asking, plan, at, operation))


def shorter_segments(plan: Plan) -> Steps:
    """Lower lengths: all at once, each segment wherever it stands, then each segment of each request alone.

    But not those that others run beside.
    """
    lasting = _lasting(plan)
    segments = [one for one in dict.fromkeys(_segments(plan)) if one not in lasting]
    longest = max((segment.length for _, segment in segments), default=1)
    yield Dial(longest, lambda most: changed(plan, lambda request: _cut(request, most, lasting)))
    for root, segment in segments:
        yield Dial(segment.length, partial(_resegmented, plan, root, segment))
    yield from _shorter_alone(plan, lasting)


def _asking(plan: Plan, at: int, operation: Complete | Start | Await, tokens: int) -> Plan:
    return replaced(plan, at, msgspec.structs.replace(operation, tokens=tokens))


def _started_before_others(plan: Plan) -> dict[int, Start]:
    """The requests that others are asked beside, by their steps: those started before the last one."""
    asked = list(requests(plan))
    return {at: request for at, request in asked[:-1] if isinstance(request, Start)}


def _lasting(plan: Plan) -> Collection[tuple[int, Segment]]:
    """Roots and segments of prompts that others are asked beside."""
    started = _started_before_others(plan).values()
    return {(request.prompt.root, segment) for request in started for segment in request.prompt.segments}


def _shorter_alone(plan: Plan, lasting: Collection[tuple[int, Segment]]) -> Iterator[Dial]:
    for at, request in requests(plan):
        for where, segment in enumerate(request.prompt.segments):
            if (request.prompt.root, segment) not in lasting:
                yield Dial(segment.length, partial(_with_length, plan, at, where))
        yield Dial(request.prompt.answer, partial(_with_answer, plan, at), least=0)


def _with_length(plan: Plan, at: int, where: int, length: int) -> Plan:
    request = plan.operations[at]
    assert isinstance(request, (Complete, Start))
    segments = list(request.prompt.segments)
    segments[where] = Segment(segments[where].name, length)
    return replaced(plan, at, _with_segments(request, tuple(segments)))


def _with_answer(plan: Plan, at: int, answer: int) -> Plan:
    request = plan.operations[at]
    assert isinstance(request, (Complete, Start))
    return replaced(plan, at, with_prompt(request, msgspec.structs.replace(request.prompt, answer=answer)))


def _segments(plan: Plan) -> Iterator[tuple[int, Segment]]:
    for _, request in requests(plan):
        yield from ((request.prompt.root, segment) for segment in request.prompt.segments)


def _with_segments(request: Complete | Start, segments: tuple[Segment, ...]) -> Complete | Start:
    return with_prompt(request, msgspec.structs.replace(request.prompt, segments=segments))


def _stretch(request: Complete | Start, length: int, lasting: int) -> Operation:
    segments = tuple(Segment(segment.name, length) for segment in request.prompt.segments)
    stretched = _with_segments(request, segments)
    return _ask(stretched, max(lasting, request.tokens) if isinstance(request, Start) else 1)


def _cut(request: Complete | Start, most: int, lasting: Collection[tuple[int, Segment]]) -> Operation:
    segments = tuple(
        segment if (request.prompt.root, segment) in lasting else Segment(segment.name, min(segment.length, most))
        for segment in request.prompt.segments
    )
    return _with_segments(request, segments)


def _resegmented(plan: Plan, root: int, old: Segment, length: int) -> Plan:
    return changed(plan, lambda request: _resegment(request, root, old, Segment(old.name, length)))


def _resegment(request: Complete | Start, root: int, old: Segment, new: Segment) -> Operation:
    if request.prompt.root != root:
        return request
    return _with_segments(request, tuple(new if segment == old else segment for segment in request.prompt.segments))


def _ask(request: Complete | Start, tokens: int) -> Operation:
    return msgspec.structs.replace(request, tokens=tokens)


def _ask_once(request: Complete | Start) -> Operation:
    return request if isinstance(request, Start) else _ask(request, 1)
