"""Requests side by side: started, awaited to a token, aborted in the queue, in prefill and in decode.

Rows and slots change hands while others compute: state must be zeroed, what an abort left must not be published as
complete, and a one-token chunk of a new request is no decode.
"""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.scenario import Scenario
from scenarios.swarm import Profile, can_be_emptied, explicit_spellings, longer, profile

_MIXES = (
    ("complete", "start", "await", "join"),
    ("complete", "start", "abort"),
    ("complete", "start", "await", "abort"),
    ("start", "start", "await", "join", "abort"),
)
_SAMPLED = 0.3
"""How many of the rounds sample in other ways too: a row that is handed on has more to forget then."""
_EVICTED = 0.4
"""How many of the rounds empty the cache, where they can."""
_WITH_EVICTIONS = ("complete", "start", "await", "evict")
_OPENINGS = ((), ("lasting", "complete"), ("lasting", "complete"), ("start", "start"))
_OPENINGS_EVICTING = ((), ("lasting", "complete", "evict"))
"""What was shared is given back by one and evicted before the other ends."""


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    one = rng.choice(explicit_spellings(capabilities))
    plain = profile(rng, capabilities, [one])
    if can_be_emptied(capabilities) and rng.random() < _EVICTED:
        return _evicting(rng, plain, capabilities)
    return msgspec.structs.replace(
        plain,
        kinds=rng.choice(_MIXES),
        openings=_OPENINGS,
        lengths=longer(rng, plain, capabilities),
        samplings=capabilities.samplings if rng.random() < _SAMPLED else plain.samplings,
        most=8,
    )


def _evicting(rng: random.Random, plain: Profile, capabilities: Capabilities) -> Profile:
    """Answers that outlast an eviction of all that the cache holds."""
    return msgspec.structs.replace(
        plain,
        roots=rng.choice((1, 1, 2)),
        kinds=_WITH_EVICTIONS,
        openings=_OPENINGS_EVICTING,
        lasting=(capabilities.lasting, capabilities.context * 3 // 8),
        evictions=plain.evictions[-1:],
        most=6,
    )


SCENARIO = Scenario(
    name="interleaving",
    summary="requests side by side, awaited token by token, aborted at any point",
    reports=(
        "vllm-project/vllm#32118",
        "sgl-project/sglang#28374",
        "ggml-org/llama.cpp#27148",
        "vllm-project/vllm#45357",
    ),
    needs=("complete", "start", "await", "join", "abort"),
    profile=_profile,
    settings=(("-np", "2"), ("-np", "4"), ("-np", "2", "--kv-unified"), ("-np", "4", "-ub", "16", "-b", "32")),
)
