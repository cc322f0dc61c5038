"""``stalefuzz compare RUN1 RUN2``: new, gone, still there.

Exit status 1 where RUN2 has a finding that RUN1 has not, else 3 where RUN2 was inconclusive, else 0.
"""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from fuzzer.commands.report import read_run
from fuzzer.exit_status import Exit
from oracles.evidence import Verdict
from reports.console import console
from reports.differences import differences
from reports.escaping import printable
from reports.record import FindingRecord, RunRecord


def compare_command(first: Path, second: Path) -> Exit:
    """Print one line a finding; raises UsageError where one of the two is no run."""
    before, after = read_run(first), read_run(second)
    found = differences(before, after)
    screen = console()
    screen.print(Text(f"{_named(first, before)}\n{_named(second, after)}"), highlight=False, soft_wrap=True)
    for word, style, findings in (
        ("NEW", "bold red", found.new),
        ("GONE", "bold green", found.gone),
        ("STILL THERE", "yellow", found.still),
    ):
        for finding in findings:
            screen.print(_line(word, style, finding), highlight=False, soft_wrap=True)
    if not (found.new or found.gone or found.still):
        screen.print("neither run has a finding", highlight=False)
    for reason in found.unsure:
        screen.print(Text(f"what is gone may be there all the same: {reason}", style="yellow"), soft_wrap=True)
    if found.new:
        return Exit.FINDING
    return Exit.INCONCLUSIVE if after.verdict is Verdict.INCONCLUSIVE else Exit.CLEAN


def _named(path: Path, record: RunRecord) -> str:
    server = f"{record.target.engine} {record.target.version}" if record.target else "no server"
    return printable(f"{path}  {record.verdict}, {server}, {record.steps} steps, seed {record.seed}")


def _line(word: str, style: str, finding: FindingRecord) -> Text:
    line = Text(f"{word:<12} ", style=style)
    line.append(printable(f"{finding.id}  {finding.title}"), style="default")
    return line
