"""The control of ``adapter-scale``: the same prompts and evictions, one scale throughout. Clean on a sound server."""

from __future__ import annotations

from scenarios.capabilities import Capabilities
from scenarios.environment import AdapterScale
from scenarios.scenario import Scenario
from scenarios.swarm import Spelling


def _spellings(capabilities: Capabilities) -> list[Spelling]:
    if not capabilities.request_scales:
        return [()]
    return [tuple(AdapterScale(adapter, 0.5) for adapter in range(capabilities.adapters))]


def _lacks(capabilities: Capabilities) -> str | None:
    return None


SCENARIO = Scenario(
    name="single-scale",
    summary="the control of adapter-scale: one scale throughout",
    reports=(),
    spellings=_spellings,
    lacks=_lacks,
)
