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
    free.SCENARIO,
    conversation.SCENARIO,
    global_scale.SCENARIO,
    interleaving.SCENARIO,
    aborts.SCENARIO,
    adapter_spelling.SCENARIO,
    saved_slots.SCENARIO,
    pinned_slots.SCENARIO,
    restarts.SCENARIO,
    sampling_state.SCENARIO,
    tenant_key.SCENARIO,
    adapter_reload.SCENARIO,
    weights_reload.SCENARIO,
    sleeping.SCENARIO,
    single_scale.SCENARIO,
    plain.SCENARIO,
)


def by_name(name: str) -> Scenario | None:
    """The scenario called ``name``, if there is one."""
    return next((scenario for scenario in SCENARIOS if scenario.name == name), None)
