"""Long prompts cut off while they are computed, and asked again: what was not computed must not pass for cached."""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.scenario import Scenario
from scenarios.swarm import Profile, explicit_spellings, long_lengths, profile

_MIXES = (("start", "abort", "complete"), ("start", "abort", "complete", "await"))
_CUT_OFF = ("lasting", "abort", "complete")


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    one = rng.choice(explicit_spellings(capabilities))
    able = long_lengths(capabilities)
    plain = profile(rng, capabilities, [one])
    return msgspec.structs.replace(
        plain,
        roots=rng.choice((1, 1, 2)),
        kinds=rng.choice(_MIXES),
        openings=((), _CUT_OFF, _CUT_OFF),
        # What is computed in two or three steps is done before a server has noticed that its client is gone.
        lengths=tuple(sorted({*plain.lengths[:1], *able[-2:]})),
        most=6,
    )


SCENARIO = Scenario(
    name="aborts",
    summary="long prompts cut off while they are computed, and asked again",
    reports=("sgl-project/sglang#28374", "vllm-project/vllm#45357"),
    needs=("complete", "start", "abort"),
    profile=_profile,
    settings=((), ("-np", "2"), ("-np", "1", "-ub", "16", "-b", "32")),
)
