"""A restart with the same files on disk: slots saved before it are restored after it, in any environment.

What is on disk outlives the process that knew what it was computed with.
"""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.scenario import Scenario
from scenarios.swarm import Profile, explicit_spellings, profile, related


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    one = [rng.choice(explicit_spellings(capabilities))]
    plain = profile(rng, capabilities, related(rng, capabilities) if rng.random() < 0.5 else one)
    # A restart costs as much as a hundred requests, so few of the operations are restarts.
    kinds = ("complete", "complete", "complete", "save", "save", "restore", "restore", "restart")
    return msgspec.structs.replace(plain, kinds=kinds, slots=tuple(range(capabilities.slots)), roots=1, most=8)


SCENARIO = Scenario(
    name="restarts",
    summary="slot states saved, the server restarted, the states restored",
    reports=("ggml-org/llama.cpp#25913", "vllm-project/vllm#53495"),
    needs=("complete", "save", "restore", "restart"),
    profile=_profile,
    settings=((), ("-np", "2")),
)
