"""All named scenarios."""

from __future__ import annotations

from scenarios.library import (
    aborts,
    adapter_reload,
    adapter_scale,
    adapter_spelling,
    conversation,
    free,
    global_scale,
    interleaving,
    pinned_slots,
    plain,
    restarts,
    sampling_state,
    saved_slots,
    single_scale,
    sleeping,
    tenant_key,
    weights_reload,
)
from scenarios.scenario import Scenario

SCENARIOS: tuple[Scenario, ...] = (
    adapter_scale.SCENARIO,
    conversation.SCENARIO,
    tenant_key.SCENARIO,
    adapter_reload.SCENARIO,
    global_scale.SCENARIO,
    adapter_spelling.SCENARIO,
    weights_reload.SCENARIO,
    saved_slots.SCENARIO,
    pinned_slots.SCENARIO,
    sleeping.SCENARIO,
    free.SCENARIO,
    aborts.SCENARIO,
    interleaving.SCENARIO,
    restarts.SCENARIO,
    sampling_state.SCENARIO,
    single_scale.SCENARIO,
    plain.SCENARIO,
)
"""In the order in which a campaign takes turns: requests one after another first, which cost a third of those side by
side, and before what loads weights, after which no version is the first one any more; then what needs company, a
restart or several ways to sample."""


def by_name(name: str) -> Scenario | None:
    """The scenario called ``name``, if there is one."""
    return next((scenario for scenario in SCENARIOS if scenario.name == name), None)
