"""Requests that leave the adapters out, between changes of the global scales.

The slot keeps KV computed at the old scales, and the guard only looks at what the request itself names.
"""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.scenario import Scenario, no_adapter
from scenarios.swarm import Profile, explicit_spellings, profile, related


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    explicit = explicit_spellings(capabilities)
    environments = related(rng, capabilities)
    plain = profile(rng, capabilities, environments)
    return msgspec.structs.replace(
        plain,
        spellings=rng.choice(((None,), (None, *plain.spellings[:1]))),
        kinds=("complete", "complete", "set_scales"),
        openings=((), ("complete", "set_scales", "complete")),
        global_scales=environments if len(environments) > 1 else tuple(rng.sample(explicit, min(len(explicit), 2))),
    )


SCENARIO = Scenario(
    name="global-scale",
    summary="global adapter scales changed between requests that leave them out",
    reports=("ggml-org/llama.cpp#26207",),
    needs=("complete", "set_scales"),
    profile=_profile,
    lacks=no_adapter,
    affected="xllamacpp 2026.4.8672 to 2026.10.11549",
)
