"""The model's own weights loaded again, or others, between requests."""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.scenario import Scenario
from scenarios.swarm import Profile, evicting, explicit_spellings, profile


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    one = rng.choice(explicit_spellings(capabilities))
    plain = msgspec.structs.replace(
        profile(rng, capabilities, [one]),
        kinds=("complete", "complete", "reload_weights"),
        openings=((), ("complete", "reload_weights", "complete")),
        roots=rng.choice((1, 1, 2)),
        versions=2,
    )
    return evicting(rng, plain, capabilities, ("complete", "evict", "reload_weights", "complete"))


SCENARIO = Scenario(
    name="weights-reload",
    summary="the model's weights loaded again, or others, between requests",
    reports=("vllm-project/vllm#45093", "InternLM/lmdeploy#4917"),
    needs=("complete", "reload_weights"),
    profile=_profile,
)
