"""Records of every kind of run, made of a real one."""

from __future__ import annotations

import msgspec
from synthetic_runs import large, nasty

from oracles.evidence import Verdict
from reports.record import RunRecord, SuspectRecord


def known(record: RunRecord) -> RunRecord:
    """Its finding is in the baseline."""
    finding = msgspec.structs.replace(record.findings[0], known=True, known_reason="ticket 7")
    return msgspec.structs.replace(record, findings=[finding], verdict=Verdict.CLEAN)


def inconclusive(record: RunRecord) -> RunRecord:
    """It found nothing and left a suspect."""
    suspect = SuspectRecord("logprobs", 2, 0.5, 0.1, "time was up", (), ["complete P", "complete P"])
    return msgspec.structs.replace(
        record, findings=[], verdict=Verdict.INCONCLUSIVE, reasons=["time was up"], suspects=[suspect]
    )


CHANGES = {
    "as-it-is": lambda record: record,
    "known": known,
    "inconclusive": inconclusive,
    "nothing-came-up": lambda record: RunRecord(reasons=["no server came up"]),
    "nasty": nasty,
    "large": large,
}
