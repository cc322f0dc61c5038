"""Sleep between requests: the server frees its model and its cache, and loads the model again when it is asked.

What outlives the sleep beside the model, the lower cache tier or the global scales, must still belong to it.
"""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.scenario import FALLS_ASLEEP, Scenario
from scenarios.swarm import Profile, explicit_spellings, profile, related


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    explicit = explicit_spellings(capabilities)
    relies = "set_scales" in capabilities.operations and rng.random() < 0.5
    environments = related(rng, capabilities)
    return msgspec.structs.replace(
        profile(rng, capabilities, [None] if relies else environments),
        # A server sleeps after a second at the earliest, so few of the operations are sleeps.
        kinds=("complete", "complete", "complete", "complete", "set_scales" if relies else "complete", "sleep"),
        global_scales=tuple(rng.sample(explicit, min(2, len(explicit)))) if relies else (),
        most=6,
    )


SCENARIO = Scenario(
    name="sleeping",
    summary="the server put to sleep and woken between requests",
    reports=("vllm-project/vllm#17103",),
    needs=("complete", "sleep"),
    profile=_profile,
    settings=(FALLS_ASLEEP,),
)
