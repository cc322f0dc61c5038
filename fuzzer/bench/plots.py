"""The plots of a part as SVG files; matplotlib draws them where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fuzzer.bench.card import Plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MISSING = "no plots: matplotlib is not installed; `pip install 'stalefuzz[bench]'` brings it"
_INCHES = (7.0, 4.2)
_MARKED = 25
"""A line of fewer points than this shows them."""


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def write_plots(folder: Path, plots: Sequence[Plot]) -> None:
    """One SVG a plot; equal data give equal files. Raises ImportError where matplotlib is not installed."""
    # A tenth of a second and 40 MB that nobody else should pay for.
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "stalefuzz", "svg.fonttype": "none"}):
        for plot in plots:
            drawn(plot).savefig(folder / f"{plot.name}.svg", metadata={"Date": None})


def drawn(plot: Plot) -> Figure:
    """A plot drawn, with a legend where it has more than one line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES, layout="constrained")
    axes = figure.add_subplot()
    for series in plot.series:
        if series.points:
            xs, ys = zip(*series.points, strict=True)
            axes.plot(xs, ys, label=series.name, marker="o" if len(xs) < _MARKED else "", markersize=3)
    axes.set(title=plot.title, xlabel=plot.x, ylabel=plot.y)
    axes.set_xscale("log" if plot.log_x else "linear")
    axes.set_yscale("log" if plot.log_y else "linear")
    axes.grid(alpha=0.3)
    if len(plot.series) > 1:
        axes.legend()
    return figure
