"""``stalefuzz run``: the options, the servers and the reports put together."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from fuzzer.baseline import NOTHING as KNOWS_NOTHING
from fuzzer.baseline import Baseline, read_baseline
from fuzzer.clock import Clock
from fuzzer.commands.report import read_run
from fuzzer.configuration import Leg
from fuzzer.corpus import NOTHING as EMPTY
from fuzzer.corpus import Corpus, from_suspects, read_corpus
from fuzzer.errors import UsageError
from fuzzer.exit_status import Exit, exit_of
from fuzzer.interrupts import interruptible
from fuzzer.options import RunOptions
from fuzzer.rig import Rig
from fuzzer.run import Run
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


class Prepared(msgspec.Struct, frozen=True):
    """What a run is given besides its options and servers."""

    baseline: Baseline
    corpus: Corpus
    earlier: RunRecord | None


def run_command(options: RunOptions, legs: Sequence[Leg] = ()) -> Exit:
    """Run and report, one leg or several; raises StalefuzzError where nothing could be run."""
    _check_scenarios(options.scenarios)
    prepared = _prepare(options)
    legs = legs or [Leg("", options.servers)]
    rigs = [Rig(leg.servers) for leg in legs]
    screen = console()
    if prepared.baseline.expired or prepared.corpus.skipped:
        screen.print(baseline_block(_expired(prepared), prepared.corpus.skipped), highlight=False, soft_wrap=True)
    if len(legs) == 1:
        record, status = _run(options, rigs[0], prepared, screen)
    else:
        record, status = _run_legs(options, list(zip(legs, rigs, strict=True)), prepared, screen)
    append_to_step_summary(summary(_shown(options, record)))
    return status if status is not None else exit_of(record)


def _prepare(options: RunOptions) -> Prepared:
    known = KNOWS_NOTHING if options.baseline is None else read_baseline(options.baseline, datetime.date.today())
    corpus = EMPTY if options.corpus is None else read_corpus(options.corpus)
    earlier = read_run(options.out) if options.resume else None
    if earlier is not None:
        corpus = msgspec.structs.replace(corpus, entries=(*from_suspects(earlier.suspects), *corpus.entries))
        earlier.suspects = []
    return Prepared(known, corpus, earlier)


def _run(options: RunOptions, rig: Rig, prepared: Prepared, screen: Console) -> tuple[RunRecord, Exit | None]:
    """One run with its own folder; the status is None unless the user ended it."""
    store = _store(options)
    status: Exit | None = None
    with interruptible(), Terminal(screen, options.out) as terminal:

        def sink(event: Event) -> None:
            shown = redacted_event(event) if options.redact else event
            if isinstance(event, Found):
                _keep_models(options.out, rig)
            store.event(shown)
            terminal.event(shown)

        run = Run(
            options,
            rig,
            sink,
            lambda record: store.run(_shown(options, record)),
            baseline=prepared.baseline,
            corpus=prepared.corpus,
            earlier=prepared.earlier,
        )
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


def _run_legs(
    options: RunOptions, legs: list[tuple[Leg, Rig]], prepared: Prepared, screen: Console
) -> tuple[RunRecord, Exit | None]:
    """Every leg in a folder of its own, sharing the time; the folder above holds them merged."""
    clock = Clock(options.time_s)
    records: dict[str, RunRecord] = {}
    status: Exit | None = None
    for at, (leg, rig) in enumerate(legs):
        left = max(options.time_s - clock.elapsed(), 1.0) / (len(legs) - at)
        screen.print(f"leg {leg.name}, {at + 1} of {len(legs)}", style="bold", highlight=False)
        mine = msgspec.structs.replace(options, servers=leg.servers, out=options.out / leg.name, time_s=left)
        records[leg.name], status = _run(mine, rig, prepared, screen)
        new = any(not finding.known for finding in records[leg.name].findings)
        if status is not None or (options.fail_fast and new):
            break
    record = merged(records, [leg.name for leg, _ in legs])
    _write_merged(options, record, [rig for _, rig in legs])
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
        if not (out / FOLDER / path.name).is_file():
            shutil.copyfile(path, out / FOLDER / path.name)


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


def _expired(prepared: Prepared) -> list[str]:
    return [f"{entry.id} ({entry.reason}), {entry.expires}" for entry in prepared.baseline.expired]
