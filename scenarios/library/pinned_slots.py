"""Requests pinned to slots, so that prompts come back to a slot that holds something else."""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.scenario import Scenario
from scenarios.swarm import Profile, explicit_spellings, profile, related


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    one = [rng.choice(explicit_spellings(capabilities))]
    plain = profile(rng, capabilities, related(rng, capabilities) if rng.random() < 0.5 else one)
    return msgspec.structs.replace(plain, slots=tuple(range(capabilities.slots)))


def _lacks(capabilities: Capabilities) -> str | None:
    if not capabilities.pins:
        return "requests cannot name a slot"
    return None if capabilities.slots > 1 else "there is one slot only"


SCENARIO = Scenario(
    name="pinned-slots",
    summary="requests pinned to slots",
    reports=("ggml-org/llama.cpp#28139", "ggml-org/llama.cpp#24746"),
    profile=_profile,
    lacks=_lacks,
    settings=(("-np", "2"), ("-np", "4")),
)
