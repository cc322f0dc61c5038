"""Whatever a scenario generates is valid, serialises and comes back equal, and runs without an operation failing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operating import operated

from fuzzer.execution import Roots, run_plan
from fuzzer.servers.llama_server import LlamaServer
from oracles.observations import Failure
from scenarios.entitlement import entitlements, self_contained
from scenarios.library.catalogue import SCENARIOS
from scenarios.operations import Complete, Start
from scenarios.plans import Plan, decode, encode, references
from scenarios.scenario import Scenario

_unused_roots = count(400)


@pytest.fixture(scope="module")
def two_slots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """Two slots, the RAM cache on."""
    with operated(tmp_path_factory.mktemp("two"), "-np", "2") as server:
        yield server


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@settings(max_examples=25)
@given(data=st.data())
def test_generated_plans(scenario: Scenario, data: st.DataObject, two_slots: LlamaServer) -> None:
    capabilities = two_slots.capabilities
    if scenario.missing(capabilities) is not None:
        return
    rng = random.Random(data.draw(st.integers(0, 200), label="round"))
    plan = data.draw(scenario.round(rng, capabilities), label="plan")
    assert decode(encode(plan)) == plan
    assert self_contained(plan)
    _speaks_of_earlier_requests_only(plan)
    trace = run_plan(two_slots, plan, _roots(plan, capabilities.space.count))
    assert len(trace.steps) == len(plan.operations) == len(entitlements(plan))
    assert [step.outcome for step in trace.steps if isinstance(step.outcome, Failure)] == []


def _speaks_of_earlier_requests_only(plan: Plan) -> None:
    for at, operation in enumerate(plan.operations):
        for reference in references(operation):
            assert reference < at
            assert isinstance(plan.operations[reference], (Complete, Start))


def _roots(plan: Plan, space: int) -> Roots:
    first = tuple(4 + next(_unused_roots) % space for _ in range(plan.roots))
    return Roots(first, tuple(4 + next(_unused_roots) % space for _ in range(plan.fillers)))
