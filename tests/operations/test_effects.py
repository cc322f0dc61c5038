"""Every operation has its effect on the real embedded server, seen in the server's own counters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import httpx
import pytest
from making import at_scales, path
from operating import operated

from fuzzer.execution import Roots, run_plan
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from fuzzer.servers.llama_server import LlamaServer
from fuzzer.target import Target
from oracles.observations import Done, Observation, Trace, overlapped
from scenarios.operations import (
    Abort,
    Await,
    Complete,
    Erase,
    Evict,
    Join,
    Operation,
    Other,
    Restart,
    Restore,
    Sampling,
    Save,
    SetScales,
    Sleep,
    Start,
    Task,
)
from scenarios.plans import Plan
from scenarios.prompts import Prompt

P = path(0, ("a", 20))
Q = path(1, ("b", 20))
OFF = at_scales(0.0, 0.0)
# An answer that goes on while a busy machine keeps this process waiting: 600 tokens were over before the next request.
LASTING = 3000
_unused_roots = count(100)


@pytest.fixture(scope="module")
def one_slot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """One slot, the RAM cache on."""
    with operated(tmp_path_factory.mktemp("one"), "-np", "1") as server:
        yield server


@pytest.fixture(scope="module")
def two_slots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """Two slots, the RAM cache on."""
    with operated(tmp_path_factory.mktemp("two"), "-np", "2") as server:
        yield server


@pytest.fixture(scope="module")
def no_ram(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """One slot, no RAM cache: what leaves the slot is gone."""
    with operated(tmp_path_factory.mktemp("none"), "-np", "1", "--cache-ram", "0") as server:
        yield server


@pytest.fixture(scope="module")
def launched() -> Iterator[Target]:
    """A server of ours that sleeps after a second, with a folder for slot files."""
    rig = Rig(ServerOptions())
    target = rig.start_fresh(setting=("--sleep-idle-seconds", "1"))
    yield target
    target.close()
    rig.stop()


def run(server: LlamaServer, *operations: Operation, prologue: tuple[Operation, ...] = ()) -> Trace:
    """Run a plan on root tokens that the server has not seen."""
    plan = Plan(operations, prologue)
    prompts = tuple(next(_unused_roots) for _ in range(plan.roots))
    return run_plan(server, plan, Roots(prompts, tuple(next(_unused_roots) for _ in range(plan.fillers))))


def ask(prompt: Prompt, **fields: Any) -> Complete:
    return Complete(prompt=prompt, scales=fields.pop("scales", OFF), **fields)


def answer(trace: Trace, step: int) -> Observation:
    outcome = trace.steps[step].outcome
    assert isinstance(outcome, Observation)
    return outcome


def told(server: LlamaServer, route: str) -> Any:
    return httpx.get(server.url + route, trust_env=False).json()


def test_a_repeated_prompt_is_reused(one_slot: LlamaServer) -> None:
    trace = run(one_slot, ask(P), ask(P))
    assert answer(trace, 0).reused == 0
    assert answer(trace, 1).reused == P.length - 1


def test_evict_pushes_a_prompt_out_of_the_slot(no_ram: LlamaServer) -> None:
    trace = run(no_ram, ask(P), Evict(1, 16, OFF), ask(P))
    assert trace.steps[1].outcome == Done(1)
    assert answer(trace, 2).reused == 0


def test_an_evicted_prompt_comes_back_from_the_lower_tier(one_slot: LlamaServer) -> None:
    assert answer(run(one_slot, ask(P), Evict(1, 16, OFF), ask(P)), 2).reused == P.length - 1


def test_started_requests_run_beside_each_other(two_slots: LlamaServer) -> None:
    long = Start(prompt=P, scales=OFF, tokens=LASTING)
    trace = run(two_slots, long, Await(0, 2), ask(Q, tokens=2), Join(0))
    assert overlapped(trace.steps[0], trace.steps[2])
    assert answer(trace, 0).slot != answer(trace, 2).slot
    assert len(answer(trace, 0).positions) == LASTING


def test_await_waits_for_tokens(two_slots: LlamaServer) -> None:
    trace = run(two_slots, Start(prompt=P, scales=OFF, tokens=LASTING), Await(0, 5), Abort(0))
    assert 5 <= len(answer(trace, 0).positions) < LASTING


@pytest.mark.parametrize("awaited", [(), (Await(0, 3),)], ids=["before the first token", "in decode"])
def test_abort_frees_the_slot(one_slot: LlamaServer, awaited: tuple[Operation, ...]) -> None:
    trace = run(one_slot, Start(prompt=P, scales=OFF, tokens=LASTING), *awaited, Abort(0), ask(Q))
    assert trace.steps[0].aborted
    assert len(answer(trace, 0).positions) < LASTING
    assert answer(trace, 2 + len(awaited)).reused == 0
    assert not any(slot["is_processing"] for slot in told(one_slot, "/slots"))


def test_abort_ends_a_request_that_waits_in_the_queue(one_slot: LlamaServer) -> None:
    first, second = Start(prompt=P, scales=OFF, tokens=LASTING), Start(prompt=Q, scales=OFF, tokens=5)
    trace = run(one_slot, first, Await(0, 1), second, Abort(2), Join(0))
    assert trace.steps[2].aborted
    assert answer(trace, 2).positions == []
    assert len(answer(trace, 0).positions) == LASTING


def test_global_scales_hold_for_requests_that_leave_them_out(one_slot: LlamaServer) -> None:
    left_out = ask(P, scales=None)
    trace = run(one_slot, SetScales(at_scales(0.5, 0.0)), left_out, ask(Q, scales=at_scales(0.5, 0.0)))
    assert [adapter["scale"] for adapter in told(one_slot, "/lora-adapters")] == [0.5, 0.0]
    assert trace.steps[1].environment == trace.steps[2].environment


def test_a_saved_slot_is_restored(two_slots: LlamaServer) -> None:
    pinned = ask(P, slot=0)
    trace = run(two_slots, pinned, Save(0), ask(Q, slot=0), Erase(0), Restore(0), pinned)
    saved, restored = trace.steps[1].outcome, trace.steps[4].outcome
    assert isinstance(saved, Done)
    assert (saved.count or 0) >= P.length
    assert restored == saved
    assert answer(trace, 5).reused == P.length - 1


def test_an_erased_slot_is_computed_again(no_ram: LlamaServer) -> None:
    trace = run(no_ram, ask(P), Erase(0), ask(P))
    assert answer(trace, 2).reused == 0


def test_a_pinned_request_runs_in_its_slot(two_slots: LlamaServer) -> None:
    trace = run(two_slots, ask(P, slot=1), ask(Q, slot=0), ask(P, slot=1))
    assert [answer(trace, step).slot for step in range(3)] == [1, 0, 1]


def test_a_prompt_goes_on_after_an_answer(one_slot: LlamaServer) -> None:
    grown = Prompt(0, path(0, ("d", 3)).segments, after=0, answer=4)
    trace = run(one_slot, ask(P, tokens=4), ask(grown))
    asked = trace.steps[1].prompt
    assert asked[: P.length + 4] == trace.steps[0].prompt + answer(trace, 0).tokens
    assert (answer(trace, 1).reused or 0) >= P.length + 2


@pytest.mark.parametrize("sampling", [Sampling.PENALTIES, Sampling.BIAS, Sampling.GRAMMAR])
def test_sampling_variants_choose_other_tokens(one_slot: LlamaServer, sampling: Sampling) -> None:
    """On one prompt of a few at least."""
    prompts = [path(root, ("a", 8 + root)) for root in range(6)]
    plain = run(one_slot, *[ask(prompt, tokens=8) for prompt in prompts])
    roots = tuple(step.prompt[0] for step in plain.steps)
    plan = Plan(tuple(ask(prompt, tokens=8, sampling=sampling) for prompt in prompts))
    varied = run_plan(one_slot, plan, Roots(roots))
    assert [step.observation and step.observation.tokens for step in plain.steps] != [
        step.observation and step.observation.tokens for step in varied.steps
    ]


@pytest.mark.parametrize("task", [Task.TOKENIZE, Task.CHAT])
def test_other_tasks_are_done(one_slot: LlamaServer, task: Task) -> None:
    assert task in one_slot.capabilities.tasks
    assert run(one_slot, Other(task)).steps[0].outcome == Done()


def test_what_a_server_cannot_do_is_not_stated(one_slot: LlamaServer) -> None:
    """Embeddings need a flag of their own, so the server refuses them and the capabilities say so."""
    refused = httpx.post(one_slot.url + "/embedding", content=json.dumps({"content": "a"}), trust_env=False)
    assert refused.status_code == 501
    assert Task.EMBEDDING not in one_slot.capabilities.tasks
    others = {"flush", "reload", "unload", "sleep", "restart", "reload_weights"}
    assert not others & set(one_slot.capabilities.operations)


def llama(target: Target) -> LlamaServer:
    assert isinstance(target.server, LlamaServer)
    return target.server


def run_launched(target: Target, *operations: Operation) -> Trace:
    """Run a plan on a server of ours, which it may restart."""
    plan = Plan(operations)
    roots = Roots(target.roots.take(plan.roots))
    return run_plan(target.server, plan, roots, restart=target.restarted_in_place)


def test_a_slot_saved_before_a_restart_is_restored_after_it(launched: Target) -> None:
    """Another process, nothing cached in it, and the state back from disk."""
    before = llama(launched).url
    trace = run_launched(launched, ask(P), Save(0), Restart(), ask(Q), Restore(0), ask(P))
    assert llama(launched).url != before
    assert answer(trace, 5).reused == P.length - 1


def test_a_restart_forgets_what_is_not_on_disk(launched: Target) -> None:
    assert answer(run_launched(launched, ask(P), Restart(), ask(P)), 2).reused == 0


def test_what_another_plan_saved_is_not_restored(launched: Target) -> None:
    run_launched(launched, ask(P), Save(1))
    assert run_launched(launched, Restore(1)).steps[0].outcome == Done()


def test_sleep_frees_the_slot_and_keeps_the_scales(launched: Target) -> None:
    assert {"sleep", "restart"} <= set(launched.server.capabilities.operations)
    scales = SetScales(at_scales(0.5, 0.0))
    left_out = ask(P, scales=None)
    trace = run_launched(launched, scales, left_out, left_out, Sleep(), left_out)
    assert [answer(trace, step).reused for step in (1, 2, 4)] == [0, P.length - 1, 0]
    assert answer(trace, 4).positions[0].top == answer(trace, 1).positions[0].top


def test_connecting_leaves_nothing_in_the_cache(launched: Target) -> None:
    """A probe that ran a chat left checkpoints, which later prompts were given; no plan could tell of it."""
    launched.restart()
    counters = httpx.get(llama(launched).url + "/metrics", trust_env=False).text
    assert "\nllamacpp:prompt_tokens_total 0\n" in counters
