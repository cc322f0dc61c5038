"""Other files in the places of a sleeping server's own: it answers with them once it wakes up, and only that server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from making import ask, path, plan_of
from running import eventually

from fuzzer.differential import Differential
from fuzzer.execution import Roots, run_plan
from fuzzer.models.tiny import other_weights, tiny_model
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from fuzzer.servers.launched import launch_embedded
from fuzzer.servers.llama_launch import EXACT
from fuzzer.servers.llama_server import LlamaServer
from fuzzer.target import Target
from oracles.comparison import compare
from oracles.noise import Noise
from oracles.observations import Observation, Trace
from scenarios.operations import Complete, Operation, Reload, ReloadWeights, Restart, Restore, Save
from scenarios.plans import Plan
from scenarios.scenario import FALLS_ASLEEP

P = path(0, ("a", 20))
OFF, A, B, BOTH = (ask(P, *scales, tokens=3) for scales in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.5, 1.0)))
LOADED = "initializing, n_slots = 1"
"""What the server logs whenever it has loaded its files."""
_unused_roots = count(1000)


@pytest.fixture(scope="module")
def servers() -> Iterator[Differential]:
    """A server of ours that sleeps after a second, and the references."""
    rig = Rig(ServerOptions())
    with ThreadPoolExecutor(1) as pool:
        target, reference = rig.start(pool)
        target.close()
        target = rig.start_fresh(setting=FALLS_ASLEEP)
        yield Differential(target, reference, Noise(()), pool=pool)
        target.close()
        reference.close()
        rig.stop()


def run(target: Target, *operations: Operation) -> Trace:
    plan = Plan(operations)
    trace = run_plan(target.server, plan, Roots((next(_unused_roots),)), restart=target.restarted_in_place)
    assert trace.unrestored is None
    return trace


def loaded(target: Target) -> int:
    """How often it has loaded its files, as far as its log says so by now."""
    return target.log_tail(2000).count(LOADED)


def apart(one: Observation, other: Observation) -> float:
    """By how much two answers differ."""
    return max(compare(one, other).delta, compare(other, one).delta)


def answers(trace: Trace) -> list[Observation]:
    return [step.outcome for step in trace.steps if isinstance(step.outcome, Observation)]


def answer_of(model: Path, adapters: tuple[Path, ...], prompt: tuple[int, ...], request: Complete) -> Observation:
    """What a server gives that was started with these files."""
    lora = [word for adapter in adapters for word in ("--lora", str(adapter))]
    flags = ("--model", str(model), *lora, *EXACT.argv(), "-np", "1", "--no-warmup")
    with launch_embedded(flags) as process, closing(LlamaServer(process.url)) as server:
        return answers(run_plan(server, plan_of(request), Roots(prompt[:1])))[0]


def test_other_weights_of_the_model(servers: Differential) -> None:
    loads = loaded(servers.target)
    trace = run(servers.target, OFF, OFF, ReloadWeights(1), OFF, OFF)
    before, again, after, later = answers(trace)
    assert [one.reused for one in (before, again, after, later)] == [0, P.length - 1, 0, P.length - 1]
    eventually(lambda: loaded(servers.target) >= loads + 2, "loaded there and back")
    right = answer_of(other_weights("dense"), tiny_model("dense").adapters, trace.steps[0].prompt, OFF)
    assert apart(after, right) == 0
    assert apart(before, right) > 1


def test_other_weights_of_an_adapter(servers: Differential) -> None:
    """Both have the same file then; the model is what it was."""
    model = tiny_model("dense")
    trace = run(servers.target, A, Reload(0, 1), A, OFF, BOTH)
    before, after, off, both = answers(trace)
    prompt = trace.steps[0].prompt
    second = (model.adapters[1], model.adapters[1])
    assert apart(after, answer_of(model.path, second, prompt, A)) == 0
    assert apart(both, answer_of(model.path, second, prompt, BOTH)) < 1e-4
    assert apart(off, answer_of(model.path, model.adapters, prompt, OFF)) == 0
    assert apart(before, after) > 1


def test_the_next_plan_finds_the_first_versions(servers: Differential) -> None:
    run(servers.target, Reload(1, 1), ReloadWeights(1))
    trace = run(servers.target, B)
    model = tiny_model("dense")
    assert apart(answers(trace)[0], answer_of(model.path, model.adapters, trace.steps[0].prompt, B)) == 0


def test_a_restarted_server_has_the_first_versions(servers: Differential) -> None:
    before, after = answers(run(servers.target, A, Reload(0, 1), ReloadWeights(1), Restart(), A))
    assert apart(before, after) == 0


def test_the_references_know_every_version(servers: Differential) -> None:
    """Each version of an adapter is one more file there, each version of the weights a process."""
    outcome = servers.run(plan_of(BOTH, Reload(0, 1), BOTH, A, ReloadWeights(1), BOTH, Reload(1, 1), BOTH, B))
    pairs = zip(answers(outcome.ours), answers(outcome.theirs), strict=True)
    assert all(apart(ours, theirs) < 1e-4 for ours, theirs in pairs)
    assert len({one.tokens for one in answers(outcome.theirs)}) > 3
    assert servers.reference.server.capabilities.adapters == 2


def test_a_slot_saved_with_other_weights_is_restored_unjudged(servers: Differential) -> None:
    """Whoever asks for what other weights computed gets it: no fault of the server's."""
    other = ask(path(1, ("b", 3)), 0.0, 0.0)
    outcome = servers.run(plan_of(OFF, Save(0), ReloadWeights(1), other, Restore(0), OFF))
    prompt, restored = outcome.ours.steps[5].prompt, answers(outcome.ours)[2]
    assert restored.reused == P.length - 1
    assert apart(restored, answer_of(other_weights("dense"), tiny_model("dense").adapters, prompt, OFF)) > 1
    assert outcome.suspects == []
