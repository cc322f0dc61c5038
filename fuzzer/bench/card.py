"""The score card: what every part of the benchmark measures, in one form for the terminal, JSON, tables and plots."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec

SEED, TIME_S = 1, 60.0
"""What holds where the command line says nothing else."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the score card; ``met`` is None where there is no goal."""

    what: str
    measured: str
    goal: str = ""
    met: bool | None = None


class Series(msgspec.Struct, frozen=True):
    """One line of a plot: a name, and points in the plot's units."""

    name: str
    points: list[tuple[float, float]]


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A plot as data; ``name`` is its file's name without suffix, units stand in the labels."""

    name: str
    title: str
    x: str
    y: str
    series: list[Series]
    log_x: bool = False
    log_y: bool = False


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one part measured: figures for the score card, every single case as a row, and plots.

    ``command`` is the command line that gives these figures again.
    """

    name: str
    command: str
    figures: list[Figure]
    columns: list[str] = []
    rows: list[list[str]] = []
    plots: list[Plot] = []


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """How a part is to measure.

    ``full`` asks for the long form, whose figures stand in the README; otherwise a part looks for minutes only.
    ``folder`` is a scratch folder that is removed afterwards; ``tell`` shows a line of progress.
    """

    full: bool
    seed: int
    time_s: float
    """Seconds for each planted or public bug."""
    folder: Path
    tell: Callable[[str], None]
    mutants: tuple[str, ...] = ()
    """The planted bugs to look for; empty: those of the form."""

    def command(self, part: str) -> str:
        """The command line that measures ``part`` like this again."""
        words = ["stalefuzz", "bench", part, *(["--full"] if self.full else [])]
        words += ["--seed", str(self.seed)] if self.seed != SEED else []
        words += ["--time", f"{self.time_s:g}s"] if self.time_s != TIME_S else []
        words += [word for name in self.mutants for word in ("--mutant", name)]
        return shlex.join(words)


Measure = Callable[[Setting], Part]
"""A part of the benchmark."""
