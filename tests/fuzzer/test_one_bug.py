"""One bug is one row, however the slot came to be taken; another bug is another row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from making import ask, at_scales, path, plan_of

from fuzzer.bench.pair_of_servers import Bench, bench
from fuzzer.options import ServerOptions
from oracles.attribution import Element
from reports.record import FindingRecord
from scenarios.operations import Complete, Evict, Other, SetScales, Task, kind
from scenarios.plans import Plan
from scenarios.prompts import Prompt

P, LONGER = path(1, ("a", 4)), path(1, ("a", 9))
EVICTED = {Element.SHARED_PREFIX, Element.SCALE_CHANGE, Element.REQUEST_BETWEEN, Element.SETTING_BETWEEN}
"""What the bug of the adapter scale of an evicted entry needs (ggml-org/llama.cpp#30129)."""


def pinned(prompt: Prompt, *scales: float, slot: int = 0) -> Complete:
    return Complete(prompt=prompt, scales=at_scales(*scales), slot=slot)


@pytest.fixture
def servers() -> Iterator[Bench]:
    with bench(ServerOptions(server_flags=("-np", "4"))) as servers:
        yield servers


def found(servers: Bench, plan: Plan) -> FindingRecord:
    outcome = servers.differential.run(plan)
    assert outcome.suspects
    finding = servers.triage().investigate(outcome, servers.case("free", 1))
    assert isinstance(finding, FindingRecord)
    return finding


def plain(slots: int) -> Plan:
    others = [ask(path(2 + slot, ("b", 3)), 1.0, 0.0) for slot in range(slots)]
    return plan_of(ask(P, 0.0, 0.0), *others, ask(LONGER, 1.0, 0.0))


def in_one_slot() -> Plan:
    return plan_of(
        pinned(P, 0.0, 0.0),
        pinned(path(2, ("b", 3)), 1.0, 0.0),
        pinned(LONGER, 1.0, 0.0),
    )


def by_global_scales() -> Plan:
    left_out = Complete(prompt=P, scales=None)
    operations = (left_out, SetScales(at_scales(0.0, 0.0)), Complete(prompt=LONGER, scales=None))
    return Plan(operations, prologue=(SetScales(at_scales(1.0, 0.0)),))


def test_how_the_slot_was_taken_makes_no_other_bug(servers: Bench) -> None:
    """With four slots the shortest plan pins its requests, and no plan without pins is as short."""
    slots = servers.differential.target.server.capabilities.slots
    unpinned, one_slot = found(servers, plain(slots)), found(servers, in_one_slot())
    assert set(unpinned.necessary) == EVICTED
    assert len(one_slot.plan) == 3
    assert one_slot.id == unpinned.id
    assert found(servers, by_global_scales()).id != unpinned.id


def test_a_pin_and_another_request_before_are_means_too() -> None:
    with bench(ServerOptions(server_flags=("-np", "2"))) as servers:
        before = (ask(path(0, ("a", 5)), 0.0, 0.0), ask(P, 1.0, 0.0))
        plan = plan_of(*before, pinned(path(2, ("a", 3)), 0.0, 0.0), ask(LONGER, 0.0, 0.0))
        # Which slot is the next one depends on what was asked before.
        servers.differential.target.restart()
        assert found(servers, plan).id == found(servers, in_one_slot()).id


def test_a_chat_or_a_filler_in_between_is_a_plain_request_in_between() -> None:
    with bench(ServerOptions()) as servers:
        # A chat runs at the global scales, which are 1 unless they are set.
        chat = plan_of(ask(P, 0.0, 0.0), Other(Task.CHAT), ask(LONGER, 1.0, 1.0))
        filler = plan_of(ask(P, 0.0, 0.0), Evict(1, 8, at_scales(1.0, 1.0)), ask(LONGER, 1.0, 1.0))
        findings = [found(servers, plan) for plan in (chat, filler, plain(1))]
        assert len({finding.id for finding in findings}) == 1
        assert {kind(operation) for finding in findings for operation in finding.plan} == {"complete"}
