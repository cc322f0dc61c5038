"""The adapters on sound zoo servers: every operation that they offer, answered as the reference answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from making import ask, path, plan_of

from fuzzer.bring_up import bring_up
from fuzzer.differential import Differential
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from oracles.noise import Noise
from scenarios.operations import Abort, Evict, Reload, ReloadWeights, Sampling, Sleep, Start, Unload
from scenarios.plans import Plan
from scenarios.swarm import evictions

P, LONG = path(0, ("a", 40)), path(0, ("a", 150))
PLAIN, TUNED = ask(P, 0.0, tokens=4), ask(P, 1.0, tokens=4)


@pytest.fixture(scope="module")
def vllm() -> Iterator[Differential]:
    with ExitStack() as stack:
        options = ServerOptions(launch="zoo", server_flags=("--flavour", "vllm"))
        differential, _ = bring_up(Rig(options), stack)
        differential.noise = Noise(())
        yield differential


def reused(differential: Differential, plan: Plan) -> list[int]:
    """How much each answered request reused, in a run without suspects."""
    outcome = differential.run(plan)
    assert outcome.suspects == []
    return [answer.reused or 0 for answer in outcome.ours.observations]


def test_an_adapter_loaded_again_answers_with_the_weights_it_was_loaded_with(vllm: Differential) -> None:
    plan = plan_of(TUNED, TUNED, Unload(0, 1), TUNED, TUNED, Reload(0, 0), TUNED, Unload(0), TUNED, TUNED)
    assert reused(vllm, plan) == [0, 32, 0, 32, 0, 0, 32]


def test_other_weights_of_the_model_have_a_reference_of_their_own(vllm: Differential) -> None:
    assert reused(vllm, plan_of(PLAIN, ReloadWeights(1), PLAIN, PLAIN, ReloadWeights(0), PLAIN)) == [0, 0, 32, 0]


def test_a_sleep_forgets_what_was_cached(vllm: Differential) -> None:
    assert reused(vllm, plan_of(PLAIN, PLAIN, Sleep(), PLAIN)) == [0, 32, 0]


def test_the_largest_eviction_takes_more_than_the_cache_holds(vllm: Differential) -> None:
    capabilities = vllm.target.server.capabilities
    assert capabilities.cache_tokens == 1024
    number, length = evictions(capabilities)[-1]
    assert number * length >= 1024
    assert reused(vllm, plan_of(PLAIN, Evict(number, length), PLAIN)) == [0, 32]


@pytest.mark.parametrize("sampling", [Sampling.GRAMMAR, Sampling.BIAS, Sampling.PENALTIES])
def test_ways_to_sample_change_the_tokens_and_are_answered_alike(vllm: Differential, sampling: Sampling) -> None:
    plain = ask(P, 0.0, tokens=32)
    own = Start(prompt=P, scales=plain.scales, tokens=32, sampling=sampling)
    outcome = vllm.run(plan_of(plain, own, plain))
    assert outcome.suspects == []
    answers = [answer.tokens for answer in outcome.ours.observations]
    assert answers[0] == answers[2] != answers[1]


def test_an_abort_right_after_the_start_reaches_the_server(vllm: Differential) -> None:
    before = aborted(vllm)
    assert vllm.run(plan_of(Start(prompt=LONG, tokens=200), Abort(0), PLAIN)).suspects == []
    assert aborted(vllm) == before + 1


def aborted(differential: Differential) -> int:
    """Requests that the server dropped, by its own count."""
    text = differential.target.server._connection.get("/metrics").decode()  # type: ignore[attr-defined]
    return int(text.partition('finished_reason="abort"} ')[2].split()[0])
