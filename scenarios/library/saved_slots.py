"""Slots saved to a file, restored into the same or another slot, erased, with other requests in between."""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.scenario import Scenario
from scenarios.swarm import Profile, explicit_spellings, profile, related

_OPENINGS = (
    (),
    ("complete", "save", "restore", "complete"),
    ("complete", "save", "complete", "restore", "complete"),
)
"""What is asked again right after it was restored; also with another request in the slot meanwhile."""


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    one = [rng.choice(explicit_spellings(capabilities))]
    plain = profile(rng, capabilities, related(rng, capabilities) if rng.random() < 0.5 else one)
    return msgspec.structs.replace(
        plain,
        kinds=("complete", "complete", "save", "restore", rng.choice(("complete", "erase"))),
        openings=_OPENINGS,
        slots=tuple(range(capabilities.slots)),
        most=8,
    )


SCENARIO = Scenario(
    name="saved-slots",
    summary="slot states saved, restored and erased between requests",
    reports=("ggml-org/llama.cpp#25913", "mybigday/llama.rn#258", "ggml-org/llama.cpp#1585"),
    needs=("complete", "save", "restore", "erase"),
    profile=_profile,
    settings=((), ("-np", "2")),
)
