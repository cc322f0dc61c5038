"""Free generation: a random subset of everything that the server can do."""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.operations import Sampling
from scenarios.scenario import Scenario
from scenarios.swarm import SALTS, Profile, Spelling, explicit_spellings, longer, profile, related

_OPTIONAL = ("start", "set_scales", "evict", "save", "erase", "flush", "reload", "unload", "sleep", "other")
_WITH = {"start": ("start", "await", "join", "abort"), "save": ("save", "restore")}


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    optional = [kind for kind in _OPTIONAL if kind in capabilities.operations]
    chosen = rng.sample(optional, min(len(optional), rng.choice((0, 1, 1, 2, 3))))
    kinds = [kind for name in chosen for kind in _WITH.get(name, (name,))]
    explicit = explicit_spellings(capabilities)
    spellings: list[Spelling] = [*related(rng, capabilities)] if rng.random() < 0.6 else [rng.choice(explicit)]
    relies = "set_scales" in kinds
    plain = profile(rng, capabilities, [*spellings, None] if relies else spellings)
    return msgspec.structs.replace(
        plain,
        kinds=("complete", "complete", rng.choice(("complete", "grow")), *kinds),
        lengths=longer(rng, plain, capabilities) if "start" in kinds else plain.lengths,
        global_scales=tuple(rng.sample(explicit, min(2, len(explicit)))) if relies else (),
        slots=tuple(range(capabilities.slots)) if capabilities.pins and rng.random() < 0.2 else (),
        samplings=_samplings(rng, capabilities),
        salts=tuple(rng.sample(SALTS, 2)) if capabilities.salts and rng.random() < 0.3 else ("",),
        tasks=capabilities.tasks,
    )


def _samplings(rng: random.Random, capabilities: Capabilities) -> tuple[Sampling, ...]:
    return capabilities.samplings if rng.random() < 0.2 else (Sampling.PLAIN,)


SCENARIO = Scenario(
    name="free",
    summary="a random subset of everything that the server can do",
    profile=_profile,
    settings=(
        (),
        ("-np", "2"),
        ("-np", "4"),
        ("-np", "2", "--kv-unified"),
        ("-np", "4", "-ub", "16", "-b", "32"),
        ("--cache-ram", "1"),
        ("--ctx-checkpoints", "2"),
    ),
)
