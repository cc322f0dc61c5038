"""The baselines draw sound plans that servers can run, blame no sound server, and reach a planted bug."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice

import pytest

from fuzzer.bench.baselines import BASELINES, search
from fuzzer.bench.uniform import uniform_plans
from fuzzer.bring_up import bring_up
from fuzzer.calibration import calibrate
from fuzzer.differential import Differential
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.catalogue import MUTANTS
from oracles.observations import Failure
from scenarios.library.public_shapes import SHAPES, public_shapes
from scenarios.operations import KINDS, kind
from scenarios.plans import Plan, compact, decode, encode
from scenarios.soundness import unsound

PLANS = 40


@pytest.fixture(scope="module", params=["llama", "vllm"])
def sound(request: pytest.FixtureRequest) -> Iterator[Differential]:
    """A zoo server with nothing planted, beside its reference."""
    with ExitStack() as stack:
        rig = Rig(ServerOptions(launch="zoo", server_flags=("--flavour", request.param, "--rows", "2")))
        differential, _ = bring_up(rig, stack)
        differential.noise = calibrate(differential, rig.numerics).noise
        yield differential


def run_all(differential: Differential, plans: Iterator[Plan]) -> int:
    """Run plans, none of which may look wrong; gives the requests that reused something.

    Servers refuse some of what races with a running request, but little.
    """
    hits = steps = refused = 0
    for plan in plans:
        assert decode(encode(plan)) == plan
        assert unsound(compact(plan)) is None
        outcome = differential.run(plan)
        assert outcome.suspects == []
        hits += outcome.ours.hits
        steps += len(outcome.ours.steps)
        refused += sum(1 for step in outcome.ours.steps if isinstance(step.outcome, Failure))
    assert refused <= steps / 20
    return hits


def test_uniform_plans_run_and_blame_nobody(sound: Differential) -> None:
    plans = uniform_plans(sound.target.server.capabilities, random.Random(1))
    # Few of them meet what another left, and which do hangs on what overlaps.
    assert run_all(sound, islice(plans, PLANS)) > 1


def test_uniform_plans_do_everything_that_the_server_can(sound: Differential) -> None:
    capabilities = sound.target.server.capabilities
    plans = islice(uniform_plans(capabilities, random.Random(2)), 300)
    done = {kind(operation) for plan in plans for operation in plan.operations}
    assert done == set(capabilities.operations) <= set(KINDS)


def test_public_shapes_run_and_blame_nobody(sound: Differential) -> None:
    plans = list(islice(public_shapes(sound.target.server.capabilities), len(SHAPES)))
    assert run_all(sound, iter(plans)) > len(plans) / 4


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_reaches_an_easy_bug(name: str) -> None:
    servers = ServerOptions(launch="zoo", server_flags=MUTANTS[Bug.SLOT_IGNORES_SCALES].flags())
    reached = search(BASELINES[name], servers, time_s=120.0, seed=1)
    assert reached.seconds is not None
    assert reached.requests is not None


def test_a_baseline_reaches_nothing_in_no_time() -> None:
    servers = ServerOptions(launch="zoo", server_flags=MUTANTS[Bug.SLOT_IGNORES_SCALES].flags())
    assert search(BASELINES["script"], servers, time_s=0.001, seed=1).seconds is None
