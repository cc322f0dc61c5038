"""Every spelling of an adapter list: all named, some named, none named, left out.

What a request does not name is off, servers say; where that does not hold, both a caching and a plain server are
wrong alike, and only a request that says the same in full shows it.
"""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.environment import AdapterScale
from scenarios.scenario import Scenario, no_adapter
from scenarios.swarm import Profile, Spelling, explicit_spellings, few, profile


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    explicit = explicit_spellings(capabilities)
    partial: list[Spelling] = [(AdapterScale(adapter, 1.0),) for adapter in range(capabilities.adapters)]
    plain = profile(rng, capabilities, few(rng, [(), *partial, *rng.sample(explicit, min(2, len(explicit)))]))
    return msgspec.structs.replace(
        plain, kinds=("complete", "complete", "set_scales"), global_scales=tuple(rng.sample(explicit, 2))
    )


def _lacks(capabilities: Capabilities) -> str | None:
    return no_adapter(capabilities) or (None if capabilities.request_scales else "adapters have no scales")


SCENARIO = Scenario(
    name="adapter-spelling",
    summary="adapter lists that name all, some or none; global scales in between",
    reports=("ggml-org/llama.cpp#28674",),
    needs=("complete", "set_scales"),
    profile=_profile,
    lacks=_lacks,
    affected="xllamacpp 2026.4.8672 to 2026.10.11549",
)
