"""Findings made of a plan written down here: run on a zoo server with a planted bug, and written as scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
from real_run import real_finding

from fuzzer.differential import Outcome
from fuzzer.execution import Roots, run_plan
from fuzzer.options import ServerOptions
from fuzzer.servers.launched import LaunchedServer
from fuzzer.servers.protocol import Server
from fuzzer.triage.account import wire_alone, wire_of
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.catalogue import MUTANTS
from fuzzer.zoo.installation import ZooInstallation
from reports.folder import write_finding
from reports.record import FindingRecord
from reports.reproduce.scripts import scripts_of
from scenarios.plans import Plan
from scenarios.story import story_lines

BOUND = 1e-3


class Case(msgspec.Struct, frozen=True):
    """A planted bug, and a plan whose step ``wrong`` (counted from 1) shows it."""

    bug: Bug
    plan: Plan
    wrong: int
    reusable: int | None = None
    """Where the count of reused tokens is what is wrong, how many could be."""

    def flags(self, *, planted: bool) -> tuple[str, ...]:
        """Arguments of a zoo server with or without the bug."""
        return MUTANTS[self.bug].flags(planted=planted)


@contextmanager
def zoo(case: Case, *, planted: bool) -> Iterator[tuple[str, Server]]:
    """A fresh zoo server: its address, and the adapter for it."""
    installation = ZooInstallation(ServerOptions(server_flags=case.flags(planted=planted)), True)
    with LaunchedServer(installation.target().launch) as server, closing(installation.connect(server.url)) as adapter:
        yield server.url, adapter


def scripts_in(folder: Path, case: Case, server: Server) -> Path:
    """The folder with the scripts of a finding that this plan would be; its requests as they go to ``server``."""
    (folder / "findings").mkdir()
    write_finding(folder, finding := _finding(case, server), scripts_of(finding))
    return folder / "findings" / finding.id


def _finding(case: Case, server: Server) -> FindingRecord:
    roots = range(4, 4 + case.plan.roots)
    trace = run_plan(server, case.plan, Roots(tuple(roots)))
    outcome, at = Outcome(case.plan, trace, trace, []), case.wrong - 1
    return msgspec.structs.replace(
        real_finding(),
        oracle="logprobs" if case.reusable is None else "accounting",
        plan=case.plan.operations,
        story=story_lines(case.plan),
        wrong=case.wrong,
        wire=wire_of(server, outcome, at),
        wire_alone=wire_alone(server, outcome, at, spelled=False),
        bound=BOUND if case.reusable is None else None,
        reusable=case.reusable,
        settings=msgspec.structs.replace(real_finding().settings, engine=server.engine, model="", flags=[]),
    )
