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
    # All keys, and plans with room for them: any two may be the pair that is taken for one.
    plain = msgspec.structs.replace(
        profile(rng, capabilities, spellings),
        salts=SALTS,
        roots=1,
        most=8,
        openings=(("complete",) * 6,),
    )
    return evicting(rng, plain, capabilities)


SCENARIO = Scenario(
    name="tenant-key",
    summary="one prompt under several tenant keys, some spelled like an adapter's name",
    reports=("sgl-project/sglang#24638", "vllm-project/vllm#53495", "LMCache/LMCache#2878"),
    profile=_profile,
    lacks=lambda capabilities: None if capabilities.salts else "requests cannot name a tenant key",
)
