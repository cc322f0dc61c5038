"""bench.md: the score card as a Markdown table, and every single case below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fuzzer.bench.card import Part
from fuzzer.bench.results import Machine, Measured, Results
from reports.escaping import markdown, printable

_MARKS = {True: "yes", False: "**no**", None: ""}


def card(results: Results) -> str:
    """The table of all figures, each line with its command and date."""
    lines = [line for measured in results.parts for line in _figures(measured)]
    return _table(["what", "measured", "goal", "met", "command", "date"], lines)


def page(results: Results, *, drawn: bool) -> str:
    """The score card, the machines, and each part's cases and, where they were ``drawn``, its plots."""
    machines = dict.fromkeys(_machine(measured.machine) for measured in results.parts)
    parts = ["# Score card", card(results), "\n".join(f"- {markdown(words)}" for words in machines)]
    parts += [section for measured in results.parts for section in _section(measured.part, drawn=drawn)]
    return "\n\n".join(parts) + "\n"


def _figures(measured: Measured) -> Iterator[list[str]]:
    part, date = measured.part, measured.date.partition("T")[0]
    for figure in part.figures:
        words = [markdown(figure.what), markdown(figure.measured), markdown(figure.goal), _MARKS[figure.met]]
        yield [*words, _code(part.command), date]


def _section(part: Part, *, drawn: bool) -> list[str]:
    plots = [f"![{markdown(plot.title)}]({plot.name}.svg)" for plot in part.plots if drawn]
    rows = [[markdown(cell) for cell in row] for row in part.rows]
    if not plots and not rows:
        return []
    table = [_table([markdown(column) for column in part.columns], rows)] if rows else []
    return [f"## {markdown(part.name)}", *plots, *table]


def _machine(machine: Machine) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    return f"{machine.cores} cores, {machine.system}, Python {machine.python}; {versions}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(command: str) -> str:
    return f"`{printable(command).replace('|', '')}`"
