"""Findings made of a plan written down here: run on a server that has its bug, and written as scripts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import msgspec
from real_run import real_finding

from fuzzer.differential import Outcome
from fuzzer.execution import Roots, run_plan
from fuzzer.options import ServerOptions
from fuzzer.servers.launched import LaunchedServer
from fuzzer.servers.llama_engine import LlamaInstallation
from fuzzer.servers.protocol import Server
from fuzzer.triage.account import wire_alone, wire_of
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.catalogue import MUTANTS
from fuzzer.zoo.installation import ZooInstallation
from oracles.observations import Failure
from reports.folder import write_finding
from reports.record import FindingRecord
from reports.reproduce.model_names import FOLDER
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

    tokens: bool = False
    """Log probabilities are right, and other tokens are chosen."""

    def flags(self, *, planted: bool) -> tuple[str, ...]:
        """Arguments of a zoo server with or without the bug."""
        return MUTANTS[self.bug].flags(planted=planted)


@contextmanager
def zoo(case: Case, *, planted: bool) -> Iterator[tuple[str, Server]]:
    """A fresh zoo server: its address, and the adapter for it."""
    installation = ZooInstallation(ServerOptions(server_flags=case.flags(planted=planted)), True)
    with LaunchedServer(installation.target().launch) as server, closing(installation.connect(server.url)) as adapter:
        yield server.url, adapter


def scripts_in(folder: Path, case: Case, server: Server, start: Sequence[str] = ()) -> Path:
    """The folder with the scripts of a finding that this plan would be; its requests as they go to ``server``."""
    return _written(folder, _finding(case, server, start))


@contextmanager
def llama_scripts(folder: Path, plan: Plan, wrong: int, *flags: str) -> Iterator[Path]:
    """The same, of a plan that was run on an embedded llama-server with these flags; the scripts start their own."""
    installation = LlamaInstallation(ServerOptions(tiny="dense", server_flags=flags), True)
    with closing(installation), ExitStack() as stack:
        process = stack.enter_context(installation.target())

        def connected() -> Server:
            return stack.enter_context(closing(installation.connect(process.url)))

        def restart() -> Server:
            process.restart()
            return connected()

        trace = run_plan(connected(), plan, Roots(tuple(range(4, 4 + plan.roots))), restart=restart)
        assert all(not isinstance(step.outcome, Failure) for step in trace.steps), trace
        outcome, server = Outcome(plan, trace, trace, []), connected()
        _keep(folder, installation)
        finding = msgspec.structs.replace(
            real_finding(),
            plan=plan.operations,
            story=story_lines(plan),
            wrong=wrong,
            wire=wire_of(server, outcome, wrong - 1),
            wire_alone=wire_alone(server, outcome, wrong - 1, spelled=False),
            settings=installation.settings(),
        )
        yield _written(folder, finding)


def _keep(folder: Path, installation: LlamaInstallation) -> None:
    (folder / FOLDER).mkdir()
    for path in installation.tiny_files:
        shutil.copyfile(path, folder / FOLDER / path.name)


def _written(folder: Path, finding: FindingRecord) -> Path:
    (folder / "findings").mkdir()
    scripts = scripts_of(finding)
    assert not scripts.why_not
    write_finding(folder, finding, scripts)
    return folder / "findings" / finding.id


def _finding(case: Case, server: Server, start: Sequence[str]) -> FindingRecord:
    fillers = 4 + case.plan.roots
    roots = Roots(tuple(range(4, fillers)), tuple(range(fillers, fillers + case.plan.fillers)))
    trace = run_plan(server, case.plan, roots)
    outcome, at = Outcome(case.plan, trace, trace, []), case.wrong - 1
    return msgspec.structs.replace(
        real_finding(),
        oracle="tokens" if case.tokens else "logprobs" if case.reusable is None else "accounting",
        plan=case.plan.operations,
        story=story_lines(case.plan),
        wrong=case.wrong,
        wire=wire_of(server, outcome, at),
        wire_alone=wire_alone(server, outcome, at, spelled=False),
        bound=BOUND if case.reusable is None else None,
        reusable=case.reusable,
        settings=msgspec.structs.replace(
            real_finding().settings, engine=server.engine, model="", flags=[], start=list(start)
        ),
    )
