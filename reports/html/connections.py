"""Which requests of a plan ran side by side: each such request has a connection of its own."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from reports.record import FindingRecord
from scenarios.operations import Complete, Start
from scenarios.plans import ended_by


class Ran(msgspec.Struct, frozen=True):
    """When a request was sent and when it had ended, on one count of events for the whole plan."""

    sent: int
    ended: int


def requests_in_time(finding: FindingRecord) -> dict[int, Ran]:
    """Each request of the minimal plan by its step, counted from 0: as it ran, or as planned where that is not kept."""
    asked = [at for at, operation in enumerate(finding.plan) if isinstance(operation, (Complete, Start))]
    spans = {at: step.span for at, step in enumerate(finding.steps) if step.span is not None}
    if all(at in spans for at in asked):
        return {at: Ran(spans[at].sent, spans[at].ended) for at in asked}
    return {at: Ran(2 * at, 2 * _planned_end(finding, at) + 1) for at in asked}


def _planned_end(finding: FindingRecord, at: int) -> int:
    """The step by which a request has ended: its own, or for a started one that of its join or abort."""
    if not isinstance(finding.plan[at], Start):
        return at
    end = ended_by(finding.plan, at)
    return len(finding.plan) if end is None else end


def beside(ran: Mapping[int, Ran], at: int) -> list[int]:
    """The later requests that were sent while request ``at`` ran."""
    return [other for other, its in ran.items() if other > at and its.sent < ran[at].ended]


def connections(ran: Mapping[int, Ran]) -> dict[int, int]:
    """The connection of each request, counted from 0: the first that is free when the request is sent."""
    free_from: list[int] = []
    taken: dict[int, int] = {}
    for at in sorted(ran, key=lambda step: ran[step].sent):
        free = next((line for line, when in enumerate(free_from) if when <= ran[at].sent), len(free_from))
        free_from[free : free + 1] = [ran[at].ended]
        taken[at] = free
    return taken
