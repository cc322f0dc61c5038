"""Plans of a corpus that a server cannot run are not asked of it, and it is said why."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from making import SPACE, ask, path, plan_of

from fuzzer.corpus import Entry, lacks_for
from scenarios.capabilities import Capabilities
from scenarios.operations import Complete, Save
from scenarios.plans import Plan

ABLE = Capabilities(SPACE, 64, operations=("complete", "save"), slots=2, adapters=2, request_scales=True, pins=True)
P = path(0, ("a", 5))


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (plan_of(Complete(prompt=P, slot=2)), "3 slots, the server has 2"),
        (plan_of(Save(4, 0)), "5 slots, the server has 2"),
        (plan_of(ask(P, 1.0, 0.0, 1.0)), "3 adapters, the server has 2"),
        (plan_of(ask(path(0, ("a", 60)), tokens=8)), "a context of 69 tokens"),
    ],
)
def test_what_a_plan_of_the_corpus_lacks_is_said(plan: Plan, words: str) -> None:
    assert words in (lacks_for(Entry(Path("plan.json"), plan), ABLE) or "")
    roomy = msgspec.structs.replace(ABLE, context=4096, slots=8, adapters=3)
    assert lacks_for(Entry(Path("plan.json"), plan), roomy) is None
