"""Servers that reuse all that an earlier request left, or nothing: prompts go on from whole earlier ones."""

from __future__ import annotations

import random

import msgspec
import pytest
from drawing import drawn
from making import SPACE

from scenarios.capabilities import Capabilities
from scenarios.library import adapter_scale, free, plain
from scenarios.operations import KINDS, Task
from scenarios.plans import Plan, requests
from scenarios.prompts import prompt_tokens
from scenarios.scenario import Scenario

CUTTING = Capabilities(SPACE, 512, operations=KINDS, tasks=tuple(Task), adapters=2, adapter_names=True, slots=8)
WHOLE = msgspec.structs.replace(CUTTING, whole_entries=True)


def hits(plan: Plan) -> list[bool]:
    """For each request whether it begins with all of an earlier one's prompt, in the same environment."""
    asked = [
        (request.scales, prompt_tokens(request.prompt, range(100, 200), SPACE))
        for _, request in requests(plan)
        if request.prompt.after is None
    ]
    return [
        any(scales == before and prompt[: len(earlier)] == earlier for before, earlier in asked[:at])
        for at, (scales, prompt) in enumerate(asked)
    ]


def share(scenario: Scenario, capabilities: Capabilities) -> float:
    """Of the requests of many rounds, how many can hit."""
    rounds = [scenario.profile(random.Random(number), capabilities) for number in range(60)]
    could = [hit for profile in rounds for plan in drawn(profile, 6) for hit in hits(plan)]
    return sum(could) / len(could)


@pytest.mark.parametrize("scenario", [adapter_scale.SCENARIO, plain.SCENARIO, free.SCENARIO], ids=lambda one: one.name)
def test_more_requests_go_on_from_a_whole_earlier_one(scenario: Scenario) -> None:
    cutting, whole = share(scenario, CUTTING), share(scenario, WHOLE)
    assert whole > 1.2 * cutting, (cutting, whole)
