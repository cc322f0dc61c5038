"""The control of ``adapter-scale``: the same prompts and evictions, one scale throughout. Clean on a sound server."""

from __future__ import annotations

import random

from scenarios.capabilities import Capabilities
from scenarios.environment import AdapterScale
from scenarios.scenario import Scenario
from scenarios.swarm import Profile, profile


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    adapters = range(capabilities.adapters) if capabilities.request_scales else ()
    return profile(rng, capabilities, [tuple(AdapterScale(adapter, 0.5) for adapter in adapters)])


SCENARIO = Scenario(
    name="single-scale",
    summary="the control of adapter-scale: one scale throughout",
    profile=_profile,
    control=True,
)
