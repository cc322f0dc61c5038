"""All named scenarios."""

from __future__ import annotations

from scenarios.library import adapter_scale, single_scale
from scenarios.scenario import Scenario

SCENARIOS: tuple[Scenario, ...] = (adapter_scale.SCENARIO, single_scale.SCENARIO)


def by_name(name: str) -> Scenario | None:
    """The scenario called ``name``, if there is one."""
    return next((scenario for scenario in SCENARIOS if scenario.name == name), None)
