"""Two runs compared: what is new, what is gone, what is still there, by the findings' fingerprints."""

from __future__ import annotations

import msgspec

from reports.record import FindingRecord, RunRecord


class Differences(msgspec.Struct, frozen=True):
    """Findings of the second run against those of the first."""

    new: list[FindingRecord]
    gone: list[FindingRecord]
    still: list[FindingRecord]
    unsure: list[str]
    """Why what is gone may be there all the same."""


def differences(before: RunRecord, after: RunRecord) -> Differences:
    """What changed from ``before`` to ``after``."""
    old = {finding.id: finding for finding in before.findings}
    now = {finding.id: finding for finding in after.findings}
    gone = [finding for name, finding in old.items() if name not in now]
    return Differences(
        new=[finding for name, finding in now.items() if name not in old],
        gone=gone,
        still=[finding for name, finding in now.items() if name in old],
        unsure=_unsure(before, after) if gone else [],
    )


def _unsure(before: RunRecord, after: RunRecord) -> list[str]:
    reasons: list[str] = []
    if after.verdict == "inconclusive":
        reasons.append("the second run was inconclusive")
    missing = [name for name in before.scenarios if name not in after.scenarios]
    if missing:
        reasons.append(f"it did not run {', '.join(missing)}")
    if after.steps < before.steps / 2:
        reasons.append(f"it ran {after.steps} operations where the first ran {before.steps}")
    return reasons
