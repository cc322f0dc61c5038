"""Conversations that grow by the model's own answers, fork, and go back to an early turn.

What is restored must not reach past the shared prefix: checkpoints of a sliding window or of a recurrent state, a
trim that takes less than was asked, an exact resend that backs off by one token.
"""

from __future__ import annotations

import random

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.scenario import Scenario
from scenarios.swarm import Profile, explicit_spellings, profile


def _profile(rng: random.Random, capabilities: Capabilities) -> Profile:
    one = rng.choice(explicit_spellings(capabilities))
    plain = profile(rng, capabilities, [one])
    window = capabilities.window or 32
    longer = tuple(rng.sample((window - 1, window, window + 1, 2 * window, 3 * window + 5), 2))
    return msgspec.structs.replace(
        plain,
        lengths=tuple(sorted({*plain.lengths[:2], *longer})),
        kinds=rng.choice((("complete", "grow"), ("complete", "complete", "grow"), ("complete",))),
    )


SCENARIO = Scenario(
    name="conversation",
    summary="conversations grown from the model's answers, forked, rewound to an early turn",
    reports=(
        "ggml-org/llama.cpp#24411",
        "ggml-org/llama.cpp#20532",
        "ggml-org/llama.cpp#27931",
        "ggml-org/llama.cpp#23206",
        "ml-explore/mlx-lm#1494",
        "ml-explore/mlx-lm#1215",
    ),
    profile=_profile,
    families=("swa", "mamba", "jamba", "lfm2"),
    settings=((), ("--swa-full",)),
    affected="#24411: xllamacpp 2026.6.9538; clean: 2026.5.9294, 2026.6.9713",
)
