"""Mutation score: each planted bug of the zoo against the default campaign, and the zoo without bugs against it.

``python -m fuzzer.bench.mutation [NAME ...] [--time S] [--json FILE]``. A mutant that is not found is listed as such.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.table import Table

from fuzzer.interrupts import Interruption
from fuzzer.options import RunOptions, ServerOptions
from fuzzer.rig import Rig
from fuzzer.run import Run
from fuzzer.zoo.catalogue import MUTANTS
from fuzzer.zoo.mutants import Mutant
from reports.console import console
from reports.record import FindingRecord, RunRecord

_SLACK = 1
"""Operations that a minimal plan may have beyond the shortest possible."""


class Score(msgspec.Struct, frozen=True):
    """How one mutant fared."""

    name: str
    kind: str
    found: bool
    seconds: float | None
    requests: int
    """Requests to the target until the finding was written, triage included."""
    operations: int | None
    shortest: int
    oracle: str = ""
    named: str = ""
    """The kind that the finding was given."""

    @property
    def minimal(self) -> bool:
        """Whether the plan is at most one operation longer than the shortest possible."""
        return self.operations is not None and self.operations <= self.shortest + _SLACK

    @property
    def words(self) -> str:
        """The outcome in a few words."""
        if not self.found:
            return "NOT FOUND"
        return f"found after {self.seconds:.1f} s, {self.operations} operations (shortest possible {self.shortest})"


def score(mutant: Mutant, *, time_s: float, seed: int, folder: Path) -> Score:
    """Fuzz a server with one planted bug until the first finding."""
    record = campaign(mutant.flags(), time_s=time_s, seed=seed, folder=folder)
    finding = next(iter(record.findings), None)
    return Score(
        name=mutant.name,
        kind=mutant.kind,
        found=finding is not None,
        seconds=record.time_to_first_finding_s,
        requests=record.requests.target,
        operations=finding.operations if finding is not None else None,
        shortest=mutant.operations,
        oracle=finding.oracle if finding is not None else "",
        named=finding.kind if finding is not None else "",
    )


def campaign(
    flags: Sequence[str], *, time_s: float, seed: int, folder: Path, max_steps: int | None = None
) -> RunRecord:
    """The default campaign on a zoo server, up to its first finding."""
    servers = ServerOptions(launch="zoo", server_flags=tuple(flags))
    options = RunOptions(servers=servers, time_s=time_s, max_steps=max_steps, seed=seed, fail_fast=True, out=folder)
    run = Run(options, Rig(servers), Interruption(), lambda event: None, lambda record: None)
    return run.execute()


def false_alarms(
    flags: Sequence[str], *, time_s: float, seed: int, folder: Path, max_steps: int | None = None
) -> tuple[int, list[FindingRecord]]:
    """Steps on a zoo server without bugs, and what was found there although nothing is."""
    record = campaign(flags, time_s=time_s, seed=seed, folder=folder, max_steps=max_steps)
    return record.steps, record.findings


def main(arguments: Sequence[str] | None = None) -> int:
    """Score the mutants and print the table."""
    options = _parser().parse_args(arguments)
    chosen = [MUTANTS[name] for name in options.names] if options.names else list(MUTANTS.values())
    scores: list[Score] = []
    with tempfile.TemporaryDirectory() as folder:
        for mutant in chosen:
            scores.append(score(mutant, time_s=options.time, seed=options.seed, folder=Path(folder)))
            print(f"{scores[-1].name}: {scores[-1].words}", file=sys.stderr, flush=True)
    console().print(table(scores))
    console().print(summary(scores), highlight=False)
    if options.json:
        options.json.write_text(json.dumps([msgspec.structs.asdict(one) for one in scores], indent=1) + "\n")
    return 0 if all(one.found for one in scores) else 1


def table(scores: Sequence[Score]) -> Table:
    """One row a mutant."""
    rows = Table("mutant", "kind", "found", "s", "requests", "operations", "shortest", "named", box=None)
    for one in scores:
        seconds = f"{one.seconds:.1f}" if one.seconds is not None else "-"
        found = "yes" if one.found else "NO"
        operations = str(one.operations or "-")
        rows.add_row(one.name, one.kind, found, seconds, str(one.requests), operations, str(one.shortest), one.named)
    return rows


def summary(scores: Sequence[Score]) -> str:
    """The score in a line."""
    seconds = [one.seconds for one in scores if one.seconds is not None]
    median = f"{statistics.median(seconds):.1f} s" if seconds else "-"
    minimal = sum(1 for one in scores if one.minimal)
    return f"{len(seconds)} of {len(scores)} mutants found, median {median}; {minimal} minimal to within one operation"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fuzzer.bench.mutation", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*MUTANTS, []], metavar="NAME")
    parser.add_argument("--time", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
