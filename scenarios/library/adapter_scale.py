"""Explicit adapter scales in every request, evictions by other prompts.

Stands for ggml-org/llama.cpp#30129: an evicted prompt comes back from the RAM cache with the KV of another scale.
"""

from __future__ import annotations

from scenarios.capabilities import Capabilities
from scenarios.scenario import Scenario
from scenarios.swarm import Spelling, explicit_spellings


def _spellings(capabilities: Capabilities) -> list[Spelling]:
    return explicit_spellings(capabilities.adapters)


def _lacks(capabilities: Capabilities) -> str | None:
    if capabilities.adapters == 0:
        return "the server has no adapter loaded"
    return None if capabilities.request_scales else "requests cannot name adapter scales"


SCENARIO = Scenario(
    name="adapter-scale",
    summary="per-request adapter scales, prompts evicted and asked again",
    reports=("ggml-org/llama.cpp#30129", "ggml-org/llama.cpp#26207"),
    spellings=_spellings,
    lacks=_lacks,
)
