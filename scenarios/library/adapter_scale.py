"""Explicit adapter scales in every request, evictions by other prompts.

An evicted prompt comes back from the RAM cache with the KV of another scale: the key omits the scale, and the guard
compares the request with the slot's previous one instead of with the entry.
"""

from __future__ import annotations

import random

from scenarios.capabilities import Capabilities
from scenarios.scenario import Scenario, no_adapter
from scenarios.swarm import Profile, evicting, profile, related


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    plain = profile(rng, capabilities, related(rng, capabilities))
    return evicting(rng, plain, capabilities)


SCENARIO = Scenario(
    name="adapter-scale",
    summary="per-request adapter scales, prompts evicted and asked again",
    reports=("ggml-org/llama.cpp#30129", "ggml-org/llama.cpp#26207", "abetlen/llama-cpp-python#1817"),
    profile=_profile,
    lacks=no_adapter,
    affected="xllamacpp 2026.4.8672 to 2026.10.11549",
)
