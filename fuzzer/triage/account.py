"""What a finding shows beside its verdict: both answers in full, the HTTP requests, the text of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import msgspec

from fuzzer.differential import Outcome
from fuzzer.errors import ServerFailure
from fuzzer.execution import request_of
from fuzzer.servers.protocol import Post, Put, Request, Server, Until
from oracles.comparison import compare
from oracles.judgement import situation
from oracles.observations import Done, Failure, Observation, Step, Trace
from reports.record import AnswerToken, FindingRecord, Original, Wire, WireRequest
from scenarios.environment import AdapterScale
from scenarios.operations import (
    Abort,
    Await,
    Complete,
    Evict,
    Join,
    Operation,
    Reload,
    ReloadWeights,
    Restart,
    Restore,
    Save,
    SetScales,
    Start,
    Unload,
)
from scenarios.prompts import Prompt, Segment, prompt_tokens
from scenarios.story import story_lines

_MOST_TOKENS = 256
_MOST_TEXTS = 64
_SETTERS = (SetScales, Reload, Unload, ReloadWeights)


def answer_of(outcome: Outcome, step: int) -> list[AnswerToken]:
    """Both answers of a step, token by token, with the difference as far as they were compared."""
    if step >= min(len(outcome.ours.steps), len(outcome.theirs.steps)):
        return []
    ours, theirs = outcome.ours.steps[step].outcome, outcome.theirs.steps[step].outcome
    if not isinstance(ours, Observation) or not isinstance(theirs, Observation):
        return []
    deltas = compare(ours, theirs).deltas
    rows = zip_longest(ours.tokens, theirs.tokens, deltas)
    return [AnswerToken(*row) for row in rows][:_MOST_TOKENS]


def situation_of(trace: Trace, step: int) -> str:
    """The class of noise that a step is held to; empty for one without an answer."""
    answer = trace.steps[step].observation if step < len(trace.steps) else None
    return str(situation(trace, step)) if answer is not None else ""


def unreduced(outcome: Outcome) -> Original | None:
    """The plan as it first diverged, in words."""
    if outcome.first is None:
        return None
    step = outcome.first.step
    return Original(story_lines(outcome.plan), step + 1, answer_of(outcome, step))


def wire_of(server: Server, outcome: Outcome, wrong: int) -> list[WireRequest]:
    """What a script has to send for a run: up to its wrong step, or to its end where requests overlap.

    Raises NotPlain where no script can.
    """
    return [_portable(server, wire) for wire in _wire(server, outcome, wrong)]


def wire_alone(server: Server, outcome: Outcome, wrong: int, *, spelled: bool) -> WireRequest | None:
    """One request of a run, told not to read the cache; ``spelled``: with every adapter named."""
    operation, step = outcome.plan.operations[wrong], outcome.ours.steps[wrong]
    if not isinstance(operation, (Complete, Start)) or not server.capabilities.bypass:
        return None
    if spelled:
        on = {scale.adapter: scale.scale for scale in step.environment.scales} if step.environment else {}
        scales = tuple(AdapterScale(at, on.get(at, 0.0)) for at in range(server.capabilities.adapters))
        operation = msgspec.structs.replace(operation, scales=scales)
    body = server.body(request_of(operation, step.prompt, reuse=False))
    return _portable(server, WireRequest(wrong + 1, server.path, body))


def _portable(server: Server, wire: WireRequest) -> WireRequest:
    """With a variable for each file of this machine."""
    return msgspec.structs.replace(wire, body=_renamed(wire.body, server.variables)) if server.variables else wire


def _renamed(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(item, variables) for key, item in value.items()}
    return f"{{{variables[value]}}}" if isinstance(value, str) and value in variables else value


class NotPlain(Exception):  # noqa: N818 - not an error: this plan has no script
    """An operation that a script cannot do, in words."""


def _wire(server: Server, outcome: Outcome, wrong: int) -> Iterator[WireRequest]:
    for operation in outcome.plan.prologue:
        yield from _administration(server, operation, 0)
    fillers = _unused(server, outcome.ours)
    running: list[int] = []
    saved: set[int] = set()
    for at, (operation, step) in enumerate(zip(outcome.plan.operations, outcome.ours.steps, strict=False)):
        if at > wrong and not outcome.plan.overlaps:
            return
        match operation:
            case Evict():
                yield from _fillers(server, operation, at + 1, fillers)
            case Restart():
                # The server is left to answer what it was asked.
                yield from (WireRequest(at + 1, does=Wire.JOIN, of=of + 1) for of in running)
                yield WireRequest(at + 1, does=Wire.RESTART)
            case Restore(file=file) if file not in saved:
                # Nothing was sent in the run either.
                continue
            case Complete() | Start() | Await() | Join() | Abort():
                if isinstance(operation, (Complete, Start)) and operation.prompt.after in running:
                    yield WireRequest(at + 1, does=Wire.JOIN, of=(operation.prompt.after or 0) + 1)
                request = _request(server, operation, at + 1, step)
                yield msgspec.structs.replace(request, refused=request.refused and at != wrong)
            case _:
                yield from _administration(server, operation, at + 1, step.outcome)
        saved |= {operation.file} if isinstance(operation, Save) and isinstance(step.outcome, Done) else set()
        running = [] if isinstance(operation, Restart) else [*running, *([at] if isinstance(operation, Start) else [])]


def _request(
    server: Server, operation: Complete | Start | Await | Join | Abort, number: int, step: Step
) -> WireRequest:
    match operation:
        case Complete():
            body = server.body(request_of(operation, step.prompt))
            return WireRequest(number, server.path, body, refused=isinstance(step.outcome, Failure))
        case Start():
            return WireRequest(
                number, server.path, server.streamed(request_of(operation, step.prompt)), does=Wire.START
            )
        case Await(of=of, tokens=tokens):
            return WireRequest(number, does=Wire.AWAIT, of=of + 1, tokens=tokens)
        case Join(of=of):
            return WireRequest(number, does=Wire.JOIN, of=of + 1)
        case Abort(of=of):
            return WireRequest(number, does=Wire.ABORT, of=of + 1)


def _administration(server: Server, operation: Operation, number: int, outcome: object = None) -> Iterator[WireRequest]:
    action = server.action(operation)
    refused = isinstance(outcome, Failure)
    if not action:
        raise NotPlain(f"step {number} is nothing that this server can be told to do")
    if refused and len(action) > 1:
        raise NotPlain(f"the server refused a part of step {number}, and which one is not on record")
    sets = isinstance(operation, _SETTERS)
    for call in action:
        match call:
            case Until(path=path, field=field):
                yield WireRequest(number, path, does=Wire.UNTIL, field=field, sets=sets)
            case Put(place=place, file=file):
                names = server.variables
                yield WireRequest(number, does=Wire.PUT, place=names[place], file=names[file], sets=sets)
            case Post(path=path, body=body, remedies=remedies):
                yield WireRequest(number, path, body, sets=sets, remedies=remedies, refused=refused)


def _fillers(server: Server, operation: Evict, step: int, unused: Iterator[int]) -> Iterator[WireRequest]:
    path = Prompt(0, (Segment("z", operation.length - 1),))
    for _ in range(operation.requests):
        prompt = prompt_tokens(path, (next(unused),), server.capabilities.space)
        yield WireRequest(step, server.path, server.body(Request(prompt, 1, operation.scales)))


def _unused(server: Server, trace: Trace) -> Iterator[int]:
    """First tokens that no prompt of the run has."""
    space, used = server.capabilities.space, {step.prompt[0] for step in trace.steps if step.prompt}
    return (token for token in range(space.first, space.first + space.count) if token not in used)


def with_texts(finding: FindingRecord, server: Server) -> FindingRecord:
    """The finding with the text of each token that it names, where the server tells."""
    texts: dict[str, str] = {}
    for token in _named_tokens(finding)[:_MOST_TEXTS]:
        try:
            text = server.text_of(token)
        except ServerFailure:
            break
        if text:
            texts[str(token)] = text
    return msgspec.structs.replace(finding, token_texts=texts)


def _named_tokens(finding: FindingRecord) -> list[int]:
    tops = [*finding.divergence.target, *finding.divergence.reference] if finding.divergence else []
    rows = [*finding.answer, *(finding.unreduced.answer if finding.unreduced else [])]
    answers = [token for row in rows for token in (row.target, row.reference) if token is not None]
    return list(dict.fromkeys([*answers, *(entry.id for entry in tops)]))
