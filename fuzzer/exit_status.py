"""What a command's exit status says; scripts depend on these."""

from __future__ import annotations

from enum import IntEnum

from oracles.evidence import Verdict
from reports.record import RunRecord


class Exit(IntEnum):
    """Status of ``stalefuzz`` commands."""

    CLEAN = 0
    FINDING = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INTERRUPTED = 130


def exit_of(record: RunRecord) -> Exit:
    """A new finding weighs more than an open question."""
    return {Verdict.FINDING: Exit.FINDING, Verdict.CLEAN: Exit.CLEAN}.get(record.verdict, Exit.INCONCLUSIVE)
