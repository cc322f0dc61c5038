"""``stalefuzz run``: the options, the servers and the reports put together."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from fuzzer.baseline import NOTHING as KNOWS_NOTHING
from fuzzer.baseline import read_baseline
from fuzzer.clock import Clock
from fuzzer.commands.report import read_run
from fuzzer.configuration import Cell
from fuzzer.corpus import NOTHING as EMPTY
from fuzzer.corpus import from_suspects, read_corpus
from fuzzer.errors import UsageError
from fuzzer.exit_status import Exit, exit_of
from fuzzer.interrupts import interruptible
from fuzzer.options import RunOptions
from fuzzer.rig import Rig
from fuzzer.run import Given, Run
from reports.console import console
from reports.events import Event, Found
from reports.folder import Store, write_finding
from reports.merging import merged
from reports.record import RunRecord
from reports.redaction import redacted, redacted_event
from reports.reproduce.model_names import FOLDER
from reports.reproduce.scripts import scripts_of
from reports.summary import append_to_step_summary, summary
from reports.terminal import Terminal, baseline_block
from scenarios.library.catalogue import SCENARIOS, by_name


def run_command(options: RunOptions, cells: Sequence[Cell] = ()) -> Exit:
    """Run and report, on one server or a matrix of them; raises StalefuzzError where nothing could be run."""
    _check_scenarios(options.scenarios)
    given = _prepare(options)
    cells = cells or [Cell("", options.servers)]
    rigs = [Rig(cell.servers) for cell in cells]
    screen = console()
    if given.baseline.expired or given.corpus.skipped:
        screen.print(baseline_block(_expired(given), given.corpus.skipped), highlight=False, soft_wrap=True)
    if len(cells) == 1:
        record, status = _run(options, rigs[0], given, screen)
    else:
        record, status = _run_matrix(options, list(zip(cells, rigs, strict=True)), given, screen)
    append_to_step_summary(summary(_shown(options, record)))
    return status if status is not None else exit_of(record)


def _prepare(options: RunOptions) -> Given:
    known = KNOWS_NOTHING if options.baseline is None else read_baseline(options.baseline, datetime.date.today())
    corpus = EMPTY if options.corpus is None else read_corpus(options.corpus)
    earlier = read_run(options.out) if options.resume else None
    if earlier is not None:
        corpus = msgspec.structs.replace(corpus, entries=(*from_suspects(earlier.suspects), *corpus.entries))
        earlier.suspects = []
    return Given(known, corpus, earlier)


def _run(options: RunOptions, rig: Rig, given: Given, screen: Console) -> tuple[RunRecord, Exit | None]:
    """One run with its own folder; the status is None unless the user ended it."""
    store = _store(options)
    status: Exit | None = None
    with interruptible() as interruption, Terminal(screen, options.out) as terminal:

        def sink(event: Event) -> None:
            shown = redacted_event(event) if options.redact else event
            if isinstance(event, Found):
                _keep_models(options.out, rig)
            store.event(shown)
            terminal.event(shown)

        run = Run(options, rig, interruption, sink, lambda record: store.run(_shown(options, record)), given)
        try:
            run.execute()
        except KeyboardInterrupt:
            run.interrupted()
            status = Exit.INTERRUPTED
        finally:
            store.reports(_shown(options, run.record))
            store.close()
        terminal.summary(_shown(options, run.record))
    return run.record, status


def _run_matrix(
    options: RunOptions, cells: list[tuple[Cell, Rig]], given: Given, screen: Console
) -> tuple[RunRecord, Exit | None]:
    """Every cell in a folder of its own, sharing the time; the folder above holds them merged."""
    clock = Clock(options.time_s)
    records: dict[str, RunRecord] = {}
    status: Exit | None = None
    for at, (cell, rig) in enumerate(cells):
        left = max(options.time_s - clock.elapsed(), 1.0) / (len(cells) - at)
        screen.print(f"{cell.name}, {at + 1} of {len(cells)}", style="bold", highlight=False)
        mine = msgspec.structs.replace(options, servers=cell.servers, out=options.out / cell.name, time_s=left)
        records[cell.name], status = _run(mine, rig, given, screen)
        new = any(not finding.known for finding in records[cell.name].findings)
        if status is not None or (options.fail_fast and new):
            break
    record = merged(records, [cell.name for cell, _ in cells])
    _write_merged(options, record, [rig for _, rig in cells])
    return record, status


def _write_merged(options: RunOptions, record: RunRecord, rigs: list[Rig]) -> None:
    store = _store(options)
    shown = _shown(options, record)
    for finding in shown.findings:
        write_finding(options.out, finding, scripts_of(finding))
    if shown.findings:
        for rig in rigs:
            _keep_models(options.out, rig)
    store.run(shown)
    store.reports(shown)
    store.close()


def _shown(options: RunOptions, record: RunRecord) -> RunRecord:
    return redacted(record) if options.redact else record


def _keep_models(out: Path, rig: Rig) -> None:
    """Copies of the tiny model beside the findings, so that the reproducers find it."""
    for path in rig.tiny_files:
        (out / FOLDER).mkdir(parents=True, exist_ok=True)
        copy = out / FOLDER / path.name
        if path.is_dir():
            shutil.copytree(path, copy, dirs_exist_ok=True)
        elif not copy.is_file():
            shutil.copyfile(path, copy)


def _store(options: RunOptions) -> Store:
    try:
        return Store(options.out, resume=options.resume)
    except OSError as error:
        raise UsageError(f"--out {options.out} cannot be written: {error.strerror}") from None


def _check_scenarios(names: tuple[str, ...]) -> None:
    for name in names:
        if by_name(name) is None:
            known = ", ".join(scenario.name for scenario in SCENARIOS)
            raise UsageError(f"there is no scenario called {name!r}; known: {known}")


def _expired(given: Given) -> list[str]:
    return [f"{entry.id} ({entry.reason}), {entry.expires}" for entry in given.baseline.expired]
