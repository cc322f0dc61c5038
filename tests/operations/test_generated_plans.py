"""Whatever a scenario generates is valid, serialises and comes back equal, and runs without an operation failing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from operating import operated

from fuzzer.execution import Roots, run_plan
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from fuzzer.servers.llama_server import LlamaServer
from fuzzer.target import Target
from oracles.observations import Failure, Trace
from scenarios.entitlement import entitlements, self_contained
from scenarios.library import adapter_reload, restarts, sleeping, weights_reload
from scenarios.library.catalogue import SCENARIOS
from scenarios.operations import Complete, Start
from scenarios.plans import Plan, decode, encode, references
from scenarios.scenario import Scenario

OF_OURS = [restarts.SCENARIO, sleeping.SCENARIO, weights_reload.SCENARIO, adapter_reload.SCENARIO]
_unused_roots = count(400)


@pytest.fixture(scope="module")
def two_slots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """Two slots, the RAM cache on."""
    with operated(tmp_path_factory.mktemp("two"), "-np", "2") as server:
        yield server


@pytest.fixture(scope="module")
def launched() -> Iterator[Target]:
    """A server of ours, which plans may restart, and which sleeps after a second."""
    rig = Rig(ServerOptions())
    target = rig.start_fresh(setting=("-np", "2", "--sleep-idle-seconds", "1"))
    yield target
    target.close()
    rig.stop()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_generated_plans(scenario: Scenario, data: st.DataObject, two_slots: LlamaServer) -> None:
    capabilities = two_slots.capabilities
    if scenario.missing(capabilities) is not None:
        return
    rng = random.Random(data.draw(st.integers(0, 200), label="round"))
    plan = data.draw(scenario.round(rng, capabilities), label="plan")
    _sound(plan)
    _runs(plan, run_plan(two_slots, plan, _roots(plan, capabilities.space.count)))


@pytest.mark.parametrize("scenario", OF_OURS, ids=lambda scenario: scenario.name)
@settings(max_examples=4, phases=(Phase.generate,), deadline=None)
@given(data=st.data())
def test_generated_plans_that_need_a_server_of_ours(scenario: Scenario, data: st.DataObject, launched: Target) -> None:
    capabilities = launched.server.capabilities
    assert scenario.missing(capabilities) is None
    rng = random.Random(data.draw(st.integers(0, 200), label="round"))
    plan = data.draw(scenario.round(rng, capabilities), label="plan")
    _sound(plan)
    roots = Roots(launched.roots.take(plan.roots))
    trace = run_plan(launched.server, plan, roots, restart=launched.restarted_in_place)
    _runs(plan, trace)
    assert trace.unrestored is None


def _sound(plan: Plan) -> None:
    assert decode(encode(plan)) == plan
    assert self_contained(plan)
    _speaks_of_earlier_requests_only(plan)


def _runs(plan: Plan, trace: Trace) -> None:
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
