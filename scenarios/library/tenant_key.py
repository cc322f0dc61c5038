"""The same prompts under several tenant keys, one of them spelled like an adapter's name."""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.environment import AdapterScale, adapter_letter
from scenarios.scenario import Scenario
from scenarios.swarm import SALTS, Profile, evicting, profile, related


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    named = [adapter for adapter in range(capabilities.adapters) if adapter_letter(adapter) in SALTS]
    mistakable = capabilities.adapter_names and named
    spellings = ((), (AdapterScale(named[0], 1.0),)) if mistakable else related(rng, capabilities)
    return msgspec.structs.replace(
        profile(rng, capabilities, spellings),
        # All of them: any two may be the pair that is taken for one, and a plan has room for them.
        salts=SALTS,
        roots=rng.choice((1, 1, 2)),
        kinds=("complete", "complete", *evicting(rng, capabilities)),
    )


SCENARIO = Scenario(
    name="tenant-key",
    summary="one prompt under several tenant keys, some spelled like an adapter's name",
    reports=("sgl-project/sglang#24638", "vllm-project/vllm#53495", "LMCache/LMCache#2878"),
    profile=_profile,
    lacks=lambda capabilities: None if capabilities.salts else "requests cannot name a tenant key",
)
