"""run.sarif: findings in the form that code hosts take (SARIF 2.1.0, OASIS)."""

from __future__ import annotations

from typing import Any

import msgspec

from reports.escaping import markdown, printable
from reports.prose import kind_in_words, paragraph, until_fixed
from reports.record import FindingRecord, RunRecord
from reports.severity import Severity

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}


def sarif(record: RunRecord) -> bytes:
    """The document; a rule is a kind of finding, a known finding is suppressed."""
    kinds = list(dict.fromkeys(finding.kind for finding in record.findings))
    run = {
        "tool": {"driver": {"name": "stalefuzz", "rules": [_rule(kind) for kind in kinds]}},
        "invocations": [{"executionSuccessful": record.verdict != "inconclusive", **_notifications(record)}],
        "results": [_result(finding, kinds) for finding in record.findings],
        "properties": {"seed": record.seed, "verdict": str(record.verdict)},
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _rule(kind: str) -> dict[str, Any]:
    return {"id": printable(kind), "shortDescription": {"text": printable(kind_in_words(kind))}}


def _notifications(record: RunRecord) -> dict[str, Any]:
    notes = [{"level": "warning", "message": {"text": printable(reason)}} for reason in record.reasons]
    return {"toolExecutionNotifications": notes} if notes else {}


def _result(finding: FindingRecord, kinds: list[str]) -> dict[str, Any]:
    words = " ".join([f"{finding.title}.", *paragraph(finding), until_fixed(finding)])
    result: dict[str, Any] = {
        "ruleId": printable(finding.kind),
        "ruleIndex": kinds.index(finding.kind),
        "level": _LEVELS.get(Severity(finding.severity), "warning") if finding.severity else "warning",
        "message": {"text": printable(words), "markdown": markdown(words)},
        "locations": [_location(finding)],
        "codeFlows": [{"threadFlows": [{"locations": _flow(finding)}]}],
        "partialFingerprints": {"stalefuzzFinding/v1": finding.id},
        "baselineState": "unchanged" if finding.known else "new",
    }
    if finding.known:
        reason = printable(finding.known_reason)
        result["suppressions"] = [{"kind": "external", "justification": reason}]
    return result


def _location(finding: FindingRecord) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": f"findings/{finding.id}.json"},
            "region": {"startLine": 1},
        }
    }


def _flow(finding: FindingRecord) -> list[dict[str, Any]]:
    return [
        {"location": {**_location(finding), "message": {"text": printable(f"{number}. {line}")}}}
        for number, line in enumerate(finding.story[:60], 1)
    ]
