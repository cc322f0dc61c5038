"""The control without adapters: prompts, evictions and, where the server can, requests side by side."""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.scenario import Scenario
from scenarios.swarm import Profile, explicit_spellings, profile


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    plain = profile(rng, capabilities, explicit_spellings(capabilities)[:1])
    overlap = "start" in capabilities.operations and capabilities.slots > 1 and rng.random() < 0.5
    return msgspec.structs.replace(plain, kinds=("complete", "start", "await", "join") if overlap else ("complete",))


SCENARIO = Scenario(
    name="plain",
    summary="the control without adapters, overlapped where there are slots for it",
    profile=_profile,
    control=True,
)
