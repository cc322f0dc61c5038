"""What a finding shows beside its verdict: both answers in full, the HTTP requests, the text of tokens."""

from __future__ import annotations

from itertools import zip_longest

import msgspec

from fuzzer.differential import Outcome
from fuzzer.errors import ServerFailure
from fuzzer.execution import request_of
from fuzzer.servers.protocol import Server
from oracles.comparison import compare
from oracles.observations import Observation
from reports.record import AnswerToken, FindingRecord, Original, WireRequest
from scenarios.operations import Complete, Operation
from scenarios.story import story_lines

_MOST_TOKENS = 256
_MOST_TEXTS = 64


def answer_of(outcome: Outcome, step: int) -> list[AnswerToken]:
    """Both answers of a step, token by token, with the difference as far as they were compared."""
    ours, theirs = outcome.ours.steps[step].outcome, outcome.theirs.steps[step].outcome
    if not isinstance(ours, Observation) or not isinstance(theirs, Observation):
        return []
    deltas = compare(ours, theirs).deltas
    rows = zip_longest(ours.tokens, theirs.tokens, deltas)
    return [AnswerToken(*row) for row in rows][:_MOST_TOKENS]


def unreduced(outcome: Outcome) -> Original | None:
    """The plan as it first diverged, in words."""
    if outcome.first is None:
        return None
    step = outcome.first.step
    return Original(story_lines(outcome.plan), step + 1, answer_of(outcome, step))


def wire_of(server: Server, outcome: Outcome) -> list[WireRequest]:
    """The HTTP requests of a run, its prologue's as step 0; none at all where it is more than one request a step."""
    prologue = [_wire(server, 0, operation, ()) for operation in outcome.plan.prologue]
    steps = zip(outcome.plan.operations, outcome.ours.steps, strict=False)
    requests = [_wire(server, at, operation, step.prompt) for at, (operation, step) in enumerate(steps, 1)]
    known = [request for request in (*prologue, *requests) if request is not None]
    return known if len(known) == len(prologue) + len(requests) else []


def _wire(server: Server, at: int, operation: Operation, prompt: tuple[int, ...]) -> WireRequest | None:
    if isinstance(operation, Complete):
        return WireRequest(at, server.path, server.body(request_of(operation, prompt)))
    action = server.action(operation)
    return None if action is None else WireRequest(at, *action)


def wire_alone(server: Server, outcome: Outcome, wrong: int) -> WireRequest | None:
    """One request of a run, told not to read the cache."""
    operation, step = outcome.plan.operations[wrong], outcome.ours.steps[wrong]
    if not isinstance(operation, Complete) or not server.capabilities.bypass:
        return None
    return WireRequest(wrong + 1, server.path, server.body(request_of(operation, step.prompt, reuse=False)))


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
