"""``stalefuzz scenarios``."""

from __future__ import annotations

from rich.table import Table

from reports.console import console
from scenarios.library.catalogue import SCENARIOS
from scenarios.scenario import Scenario


def scenarios_command() -> None:
    """List the named scenarios."""
    table = Table("scenario", "what it does", "stands for", box=None, pad_edge=False)
    for scenario in SCENARIOS:
        table.add_row(scenario.name, scenario.summary, _stands_for(scenario))
    console().print(table)


def _stands_for(scenario: Scenario) -> str:
    if scenario.control:
        return "a control: clean on a sound server"
    return ", ".join(scenario.reports) or "nothing in particular"
