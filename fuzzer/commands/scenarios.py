"""``stalefuzz scenarios``."""

from __future__ import annotations

from rich.table import Table

from reports.console import console
from scenarios.library.catalogue import SCENARIOS


def scenarios_command() -> None:
    """List the named scenarios."""
    table = Table("scenario", "what it does", "stands for", box=None, pad_edge=False)
    for scenario in SCENARIOS:
        table.add_row(
            scenario.name, scenario.summary, ", ".join(scenario.reports) or "a control: clean on a sound server"
        )
    console().print(table)
