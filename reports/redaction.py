"""``--redact``: prompts and answers become shapes, addresses and paths go; what is left still replays.

A plan names segments and lengths, never text, so it is a shape already. Token numbers are renamed in order of
appearance: which of them are equal stays visible, which they are does not.
"""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from reports import events
from reports.record import (
    AnswerToken,
    Divergence,
    FindingRecord,
    OthersRecord,
    ReferenceRecord,
    RunRecord,
    StepRecord,
    SuspectRecord,
    TargetRecord,
    Token,
)

HIDDEN = "(redacted)"


def redacted(record: RunRecord) -> RunRecord:
    """The record of a run without anything that a model or a user wrote."""
    flags = record.settings.flags if record.settings is not None else []
    return msgspec.structs.replace(
        record,
        redacted=True,
        target=_server(record.target, flags),
        reference=_server(record.reference, []),
        reasons=[_without_addresses(reason, record.target, record.reference) for reason in record.reasons],
        findings=[redacted_finding(finding) for finding in record.findings],
        others=_others(record.others),
        suspects=[redacted_suspect(suspect) for suspect in record.suspects],
        reuse_lost=[msgspec.structs.replace(lost, wire=[]) for lost in record.reuse_lost],
    )


def redacted_finding(finding: FindingRecord) -> FindingRecord:
    """The same for a finding."""
    names = _Names()
    unreduced = finding.unreduced
    if unreduced is not None:
        unreduced = msgspec.structs.replace(unreduced, answer=names.answer(unreduced.answer))
    explanation = [HIDDEN if _quotes_an_error(finding, line) else line for line in finding.explanation]
    return msgspec.structs.replace(
        finding,
        answer=names.answer(finding.answer),
        unreduced=unreduced,
        divergence=names.divergence(finding.divergence),
        steps=[names.step(step) for step in finding.steps],
        story=[HIDDEN if _quotes_an_error(finding, line) else line for line in finding.story],
        explanation=explanation,
        wire=[],
        wire_alone=None,
        token_texts={},
    )


def redacted_suspect(suspect: SuspectRecord) -> SuspectRecord:
    """The same for a suspect: a refusal may quote the prompt."""
    return msgspec.structs.replace(suspect, reason=HIDDEN) if suspect.oracle == "health" else suspect


def redacted_event(event: events.Event) -> events.Event:
    """The same for an event."""
    match event:
        case events.Started():
            return msgspec.structs.replace(event, what="starting or reaching the servers")
        case events.Probed():
            target = _server(event.target, [])
            return msgspec.structs.replace(event, target=target, reference=_server(event.reference, []))
        case events.Found():
            return msgspec.structs.replace(event, finding=redacted_finding(event.finding))
        case events.Dropped():
            return msgspec.structs.replace(event, suspect=redacted_suspect(event.suspect))
        case events.Restarted():
            return msgspec.structs.replace(event, why="a server was started again")
        case events.Shared():
            return msgspec.structs.replace(event, why="somebody else uses the target too")
        case events.Finished():
            return msgspec.structs.replace(event, reasons=[HIDDEN for _ in event.reasons])
    return event


def _server(record: Any, flags: list[str]) -> Any:
    if record is None:
        return None
    launch = shlex.join(["llama-server", *flags]) if record.launch is not None and flags else None
    return msgspec.structs.replace(record, url=None, launch=launch)


def _others(others: OthersRecord | None) -> OthersRecord | None:
    """Names of adapters and folders are the user's words."""
    if others is None:
        return None
    return msgspec.structs.replace(
        others, changes={"a setting": sum(others.changes.values())} if others.changes else {}
    )


def _without_addresses(text: str, *servers: TargetRecord | ReferenceRecord | None) -> str:
    for server in servers:
        if server is not None and server.url:
            text = text.replace(server.url, "the server")
    return text


def _quotes_an_error(finding: FindingRecord, line: str) -> bool:
    return any(step.error is not None and step.error in line for step in finding.steps)


class _Names:
    """Tokens numbered from 1 in order of appearance."""

    def __init__(self) -> None:
        self._names: dict[int, int] = {}

    def __call__(self, token: int) -> int:
        return self._names.setdefault(token, len(self._names) + 1)

    def answer(self, answer: list[AnswerToken]) -> list[AnswerToken]:
        return [
            AnswerToken(
                None if row.target is None else self(row.target),
                None if row.reference is None else self(row.reference),
                row.delta,
            )
            for row in answer
        ]

    def divergence(self, at: Divergence | None) -> Divergence | None:
        if at is None:
            return None
        return msgspec.structs.replace(at, target=self._top(at.target), reference=self._top(at.reference))

    def step(self, step: StepRecord) -> StepRecord:
        error = None if step.error is None else HIDDEN
        return msgspec.structs.replace(step, tokens=[self(token) for token in step.tokens], error=error)

    def _top(self, entries: list[Token]) -> list[Token]:
        return [Token(self(entry.id), entry.logprob) for entry in entries]
