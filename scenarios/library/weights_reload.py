"""The model's own weights loaded again, or others, between requests."""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.scenario import Scenario
from scenarios.swarm import Profile, evicting, explicit_spellings, profile


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    one = rng.choice(explicit_spellings(capabilities))
    return msgspec.structs.replace(
        profile(rng, capabilities, [one]),
        kinds=("complete", "complete", "reload_weights", *evicting(rng, capabilities)),
        roots=rng.choice((1, 1, 2)),
        versions=2,
    )


SCENARIO = Scenario(
    name="weights-reload",
    summary="the model's weights loaded again, or others, between requests",
    reports=("vllm-project/vllm#45093", "InternLM/lmdeploy#4917"),
    needs=("complete", "reload_weights"),
    profile=_profile,
)
