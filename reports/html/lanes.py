"""Lane timeline of a plan: a lane a slot, or a connection where the server tells no slots; a column a step.

Prompt bars are split into what was reused and what was computed; a line goes on from a request as long as it ran beside
others.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from reports.html.connections import beside, connections, requests_in_time
from reports.record import FindingRecord, StepRecord
from scenarios.operations import Abort, Await, Complete, Join, Operation, Start, kind, scales_in_words
from scenarios.story import prompt_names

MOST_STEPS = 60
ENVIRONMENTS = 6
"""Distinct colours; environments beyond share the last, and each also has its text."""

_LEFT, _LEFT_OF_CONNECTIONS = 78, 118
"""Where bars begin: beyond the names of the lanes."""
_BEFORE = 18
"""By how much the line of a lane begins before its bars."""
_TOP = 6
_LANE = 106
_GAP = 34
_CELL = 30
_LONGEST = 260
_CHARACTER = 7.2
_JOINT = 26
"""Room for the line from the stale source and its label."""
_FOOT = 90
"""From the top of a lane to below the frame of a bar."""


class Bar(msgspec.Struct, frozen=True):
    """One request; all lengths in user units of the drawing."""

    step: int
    x: float
    y: float
    width: float
    reused_width: float
    answer_x: float
    answer_width: float
    name: str
    environment: str
    cells: int
    """Tokens to be told apart in the drawing; 0 where they are too many."""
    colour: int
    counts: str
    title: str
    wrong: bool
    source: bool


class Mark(msgspec.Struct, frozen=True):
    """An operation that asks for no answer: an eviction, an abort, a switch, or a kind that this page does not know."""

    step: int
    x: float
    y: float
    name: str
    title: str
    wrong: bool


class Flight(msgspec.Struct, frozen=True):
    """From a request that was started to the last that was done, or asked, while it ran."""

    start: float
    end: float
    y: float


class Lane(msgspec.Struct, frozen=True):
    """One slot or connection."""

    name: str
    y: float


class Joint(msgspec.Struct, frozen=True):
    """The line from the stale source to the wrong request."""

    path: str
    arrow: str
    x: float
    y: float
    label: str


class Timeline(msgspec.Struct, frozen=True):
    """Everything that the template draws."""

    width: float
    height: float
    rails: float
    """Where the lines of the lanes begin."""
    lanes: list[Lane]
    bars: list[Bar]
    marks: list[Mark]
    flights: list[Flight]
    joint: Joint | None
    left_out: int
    title: str


def timeline(finding: FindingRecord) -> Timeline:
    """The timeline of a finding's minimal plan; the last steps only where it is very long."""
    count = len(finding.plan)
    first = max(0, count - MOST_STEPS)
    layout = _Layout(finding, first)
    for at in range(first, count):
        layout.place(at)
    return layout.finished()


class _Layout:
    def __init__(self, finding: FindingRecord, first: int) -> None:
        self._finding = finding
        self._first = first
        asked = [op for op in finding.plan if isinstance(op, (Complete, Start))]
        self._names = prompt_names([request.prompt for request in asked])
        self._colours = {words: at for at, words in enumerate(dict.fromkeys(map(_environment, asked)))}
        self._lanes: dict[str, int] = {}
        slots = {step.slot for step in finding.steps if step.slot is not None}
        self._height = _LANE if len(slots) <= 1 else _LANE + _JOINT
        self._unit = _unit([_prompt_length(op, _step(finding, at)) for at, op in enumerate(finding.plan)])
        self._tells_slots = bool(slots)
        self._ran = requests_in_time(finding)
        self._connections = connections(self._ran) if not slots else {}
        self._left = _LEFT_OF_CONNECTIONS if any(self._connections.values()) else _LEFT
        self._x = float(self._left)
        self._bars: list[Bar] = []
        self._marks: list[Mark] = []
        self._followed: dict[int, float] = {}
        """Of each started request, by its step from 0: where the last operation on it stands."""

    def place(self, at: int) -> None:
        """Give a step its column."""
        step, operation = _step(self._finding, at), self._finding.plan[at]
        if isinstance(operation, (Complete, Start)):
            self._place_bar(at, operation, step, self._lane_y(at, _slot(step)))
        else:
            self._place_mark(at, operation)

    def finished(self) -> Timeline:
        lanes = [Lane(name, _TOP + self._height * at) for name, at in self._lanes.items()]
        joint = self._joint()
        labelled = joint.x + len(joint.label) * _CHARACTER if joint is not None else 0
        return Timeline(
            rails=self._left - _BEFORE,
            width=max(self._x, labelled),
            height=_TOP + self._height * len(lanes) + (_JOINT if joint and self._height == _LANE else 0),
            lanes=lanes,
            bars=self._bars,
            marks=self._marks,
            flights=self._flights(),
            joint=joint,
            left_out=self._first,
            title=f"Timeline of {len(self._finding.plan)} steps: " + "; ".join(self._finding.story[self._first :]),
        )

    def _place_mark(self, at: int, operation: Operation) -> None:
        name, of = kind(operation), at
        slot: int | None = getattr(operation, "slot", None)
        width = max(len(name) * _CHARACTER, 24)
        x = self._x + width / 2
        if isinstance(operation, (Await, Join, Abort)):
            of, slot = operation.of, _slot(_step(self._finding, operation.of))
            self._followed[of] = x
        y = self._lane_y(of, slot)
        self._marks.append(Mark(at + 1, x, y, name, self._story(at), at + 1 == self._finding.wrong))
        self._x += width + _GAP

    def _flights(self) -> list[Flight]:
        ends = {bar.step - 1: bar.answer_x + bar.answer_width for bar in self._bars}
        flights = []
        for bar in self._bars:
            at = bar.step - 1
            if isinstance(self._finding.plan[at], Start):
                until = [ends[other] for other in beside(self._ran, at) if other in ends]
                flights.append(Flight(ends[at], max([ends[at], self._followed.get(at, 0.0), *until]), bar.y))
        return [flight for flight in flights if flight.end > flight.start]

    def _place_bar(self, at: int, operation: Complete | Start, step: StepRecord | None, y: float) -> None:
        length = _prompt_length(operation, step)
        reused = (step.reused or 0) if step is not None else 0
        width = max(length * self._unit, _CELL)
        environment, counts = _environment(operation), _counts(step)
        answer = min(max(len(step.tokens) if step is not None else 0, 1) * 14.0, 84.0)
        bar = Bar(
            step=at + 1,
            x=self._x,
            y=y,
            width=width,
            reused_width=width * min(reused / length, 1.0) if length else 0.0,
            answer_x=self._x + width + 4,
            answer_width=answer,
            name=self._names[operation.prompt],
            environment=environment,
            cells=length if length * self._unit >= length * 10 and length > 1 else 0,
            colour=min(self._colours[environment], ENVIRONMENTS - 1),
            counts=counts,
            title=self._story(at),
            wrong=at + 1 == self._finding.wrong,
            source=self._finding.stale_source is not None and at + 1 == self._finding.stale_source.step,
        )
        self._bars.append(bar)
        label = max(len(counts), len(environment) + 2, len(bar.name) + 4) * _CHARACTER
        self._x += max(width + 4 + answer, label) + _GAP

    def _lane_y(self, at: int, slot: int | None) -> float:
        """Where the lane of the operation at ``at`` begins; what is about no request stands on the first."""
        if self._left == _LEFT_OF_CONNECTIONS:
            name = f"connection {self._connections.get(at, 0) + 1}"
        elif slot is not None:
            name = f"slot {slot}"
        elif at in self._ran and self._tells_slots:
            name = "slot ?"
        elif self._lanes:
            return _TOP
        else:
            name = "server"
        return _TOP + self._height * self._lanes.setdefault(name, len(self._lanes))

    def _story(self, at: int) -> str:
        story = self._finding.story
        return f"Step {at + 1}: {story[at]}" if at < len(story) else f"Step {at + 1}"

    def _joint(self) -> Joint | None:
        ends = [next((bar for bar in self._bars if bar.source), None), next((b for b in self._bars if b.wrong), None)]
        source, wrong = ends
        if source is None or wrong is None:
            return None
        start, end = source.x + source.width / 2, wrong.x + max(wrong.reused_width, 8) / 2
        low = max(source.y, wrong.y) + _LANE - 2
        path = f"M{start:.1f} {source.y + _FOOT} V{low:.1f} H{end:.1f} V{wrong.y + _FOOT + 7}"
        label = f"state of step {source.step} ({source.environment}), reused by step {wrong.step} ({wrong.environment})"
        return Joint(path, f"M{end - 5:.1f} {wrong.y + _FOOT + 9} h10 l-5 -8z", start, low + 17, label)


def _step(finding: FindingRecord, at: int) -> StepRecord | None:
    return finding.steps[at] if at < len(finding.steps) else None


def _prompt_length(operation: Operation, step: StepRecord | None) -> int:
    if step is not None and step.prompt:
        return step.prompt
    return operation.prompt.length if isinstance(operation, (Complete, Start)) else 0


def _environment(operation: Operation) -> str:
    if not isinstance(operation, (Complete, Start)):
        return ""
    words = "global scales" if operation.scales is None else scales_in_words(operation.scales) or "no adapter named"
    return f"{words} salt={operation.salt}" if operation.salt else words


def _slot(step: StepRecord | None) -> int | None:
    return step.slot if step is not None else None


def _counts(step: StepRecord | None) -> str:
    if step is None or step.error is not None:
        return "no answer"
    if step.computed is None:
        return "reuse not told"
    return f"reused {step.reused}, computed {step.computed}" if step.reused else f"computed {step.computed}"


def _unit(lengths: Sequence[int]) -> float:
    """Drawing units a token: one cell each while that fits, shares of the longest bar beyond."""
    longest = max([*lengths, 1])
    return min(float(_CELL), _LONGEST / longest)
