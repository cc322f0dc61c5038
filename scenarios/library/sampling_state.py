"""Requests that sample in ways of their own: penalties, biases, grammars, seeds must not outlive them."""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.operations import Sampling
from scenarios.scenario import Scenario
from scenarios.swarm import Profile, explicit_spellings, profile


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    one = rng.choice(explicit_spellings(capabilities))
    variants = [sampling for sampling in capabilities.samplings if sampling is not Sampling.PLAIN]
    beside = "start" in capabilities.operations and rng.random() < 0.5
    return msgspec.structs.replace(
        profile(rng, capabilities, [one]),
        roots=rng.choice((1, 1, 2)),
        # A penalty shows only where a token would come again, which short answers have none of.
        answers=rng.choice(((1, 8), (1, 24), (24, 48))),
        samplings=(Sampling.PLAIN, *variants),
        kinds=("complete", "start", "join") if beside else ("complete",),
        # The row of one that ends is taken by one that goes on.
        openings=((), ("start", "start"), ("brief", "lasting")) if beside else ((),),
    )


SCENARIO = Scenario(
    name="sampling-state",
    summary="penalties, logit biases, grammars and seeds before plain requests",
    reports=("vllm-project/vllm#42019", "sgl-project/sglang#20724"),
    profile=_profile,
    lacks=lambda capabilities: None if len(capabilities.samplings) > 1 else "the server samples in one way only",
)
