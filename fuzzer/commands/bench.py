"""``stalefuzz bench``: how good the fuzzer is, measured here and now."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fuzzer.bench.card import SEED, TIME_S, Measure, Part, Setting
from fuzzer.bench.markdown import page
from fuzzer.bench.parts import PARTS, QUICK, Parts
from fuzzer.bench.plots import MISSING, can_draw, write_plots
from fuzzer.bench.results import Measured, Results, now, read_results, this_machine, write_results
from fuzzer.errors import CannotJudge, UsageError
from fuzzer.exit_status import Exit
from fuzzer.zoo.catalogue import MUTANTS
from reports.console import console
from reports.escaping import printable
from reports.folder import write_atomically

_MARKS = {True: Text("yes", style="green"), False: Text("NO", style="bold red"), None: Text("")}


class BenchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure, and how; no part named means all of them."""

    parts: tuple[str, ...] = ()
    quick: bool = False
    full: bool = False
    time_s: float = TIME_S
    seed: int = SEED
    mutants: tuple[str, ...] = ()
    out: Path = Path("stalefuzz-out")


def bench_command(options: BenchOptions, parts: Parts = PARTS) -> Exit:
    """Measure part after part, each written down when it is done.

    Status 1 where a goal was missed, 3 where a part could not measure, 0 where every goal was met.
    """
    _check(options, parts)
    names = options.parts or (QUICK if options.quick else tuple(parts))
    before = read_results(options.out)
    screen = console()
    measured: list[Measured] = []
    silent = False
    for name in names:
        try:
            measured.append(_measure(name, parts[name], options, screen))
        except CannotJudge as reason:
            silent = True
            screen.print(Text(printable(f"{name}: {reason}"), style="yellow"), soft_wrap=True)
            continue
        before = before.merged(measured[-1])
        _write(options.out, before)
    _show(screen, measured)
    if measured and not can_draw():
        screen.print(MISSING, highlight=False, markup=False, soft_wrap=True)
    if Results(measured).missed:
        return Exit.FINDING
    return Exit.INCONCLUSIVE if silent else Exit.CLEAN


def _check(options: BenchOptions, parts: Parts) -> None:
    if options.quick and options.full:
        raise UsageError("--quick and --full exclude each other: leave one of them out")
    for name in options.parts:
        if name not in parts:
            raise UsageError(f"the benchmark has no part {name!r}; it has {', '.join(parts)}")
    for name in options.mutants:
        if name not in MUTANTS:
            raise UsageError(f"there is no planted bug called {name!r}; `stalefuzz zoo list` names them")


def _measure(name: str, part: tuple[str, Measure], options: BenchOptions, screen: Console) -> Measured:
    about, measure = part
    screen.print(Text(f"{name}: {about}", style="bold"))
    machine, date, began = this_machine(), now(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(
            full=options.full,
            seed=options.seed,
            time_s=options.time_s,
            folder=Path(folder),
            tell=lambda line: screen.print(f"  {printable(line)}", highlight=False, markup=False, soft_wrap=True),
            mutants=options.mutants,
        )
        measured = measure(setting)
    return Measured(measured, date, machine, round(time.perf_counter() - began, 1))


def _write(out: Path, results: Results) -> None:
    """bench.json, bench.md, and a plot a file where they can be drawn."""
    write_results(out, results)
    write_atomically(out / "bench.md", page(results, drawn=can_draw()).encode())
    if can_draw():
        write_plots(out, [plot for measured in results.parts for plot in measured.part.plots])


def _show(screen: Console, measured: Sequence[Measured]) -> None:
    for one in measured:
        if one.part.rows:
            screen.print(_cases(one.part))
    table = Table("what", "measured", "goal", "met", title="score card", title_justify="left")
    for figure in (figure for one in measured for figure in one.part.figures):
        words = [Text(printable(text)) for text in (figure.what, figure.measured, figure.goal)]
        table.add_row(*words, _MARKS[figure.met])
    screen.print(table)


def _cases(part: Part) -> Table:
    table = Table(title=part.name, title_justify="left", box=None)
    for column in part.columns:
        table.add_column(column, overflow="fold")
    for row in part.rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
