"""The parts that measure the verdict: what their figures count, and that what they plant is what they say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzzer.bench import duplicates, sensitivity, stale_source
from fuzzer.bench.duplicates import Found
from fuzzer.bench.pair_of_servers import pair_of_servers
from fuzzer.bench.sensitivity import Case, Curve, planted
from fuzzer.bench.smollm2 import INSTALL, random_lora, smollm2
from fuzzer.bench.stale_source import Named
from fuzzer.calibration import Numerics
from fuzzer.differential import Differential
from fuzzer.models.gguf_facts import adapter_facts
from fuzzer.options import ServerOptions
from oracles.accounting import reusable
from scenarios.entitlement import entitlements

FOUND, HIDDEN = Case(True, 0.1, True, True), Case(True, 1e-3, False, True)


@pytest.fixture(scope="module")
def live() -> Iterator[Differential]:
    with pair_of_servers(ServerOptions()) as differential:
        yield differential


@pytest.mark.parametrize("case", range(4))
def test_a_planted_step_is_reused_stale_and_beyond_its_account(live: Differential, case: int) -> None:
    outcome = live.run(planted(0.5, 1e-2, case, 2))
    arm = outcome.arm(2)
    allowed = reusable(outcome.ours, 2)
    assert allowed is not None
    assert (arm.reused or 0) > allowed
    assert not arm.clean


def test_the_smallest_step_is_that_from_which_on_steps_are_found() -> None:
    cases = {1e-3: [FOUND, FOUND], 1e-2: [FOUND, HIDDEN], 0.1: [FOUND] * 9 + [HIDDEN], 1.0: [FOUND]}
    curve = Curve("tiny dense", Numerics.DEFAULT, cases)
    assert curve.smallest == 0.1
    found, accounted = sensitivity.figures(curve)
    assert (found.met, accounted.met) == (False, True)


def test_steps_that_were_not_reused_count_for_nothing() -> None:
    never = Curve("tiny dense", Numerics.EXACT, {1.0: [Case(False, 0.0, False, False)]})
    assert never.smallest is None
    assert [figure.met for figure in sensitivity.figures(never)] == [False, False]


def test_every_drawn_plan_has_a_donor_and_the_same_seed_the_same_plans() -> None:
    plans = stale_source.drawn(3, 30)
    assert plans == stale_source.drawn(3, 30)
    assert len(plans) > 20
    enough = [plan for plan in plans if len(set(entitlements(plan))) >= 3]
    assert enough


@pytest.mark.parametrize(("right", "met"), [(95, True), (94, False)])
def test_the_stale_source_has_to_be_named_in_95_of_100(right: int, met: bool) -> None:
    named = [Named(2, 2, 3, 3)] * right + [Named(2, None, 3, 3)] * (100 - right)
    assert stale_source.figure(named).met is met


@pytest.mark.parametrize(
    ("ids", "met"), [(["a", "a"], True), (["a", "b"], False), (["a", ""], False), (["", ""], False)]
)
def test_one_bug_is_one_fingerprint(ids: list[str], met: bool) -> None:
    assert duplicates.figure([Found(seed, name) for seed, name in enumerate(ids)]).met is met


def test_the_adapter_of_the_real_model_fits_it(tmp_path: Path) -> None:
    model = smollm2()
    if model is None:
        pytest.skip(f"the quantised model is not installed: {INSTALL}")
    one, again = (random_lora(model, tmp_path / name, seed=1) for name in _folders(tmp_path))
    assert one.read_bytes() == again.read_bytes()
    assert adapter_facts(one).is_adapter


def _folders(path: Path) -> list[str]:
    for name in ("one", "again"):
        (path / name).mkdir()
    return ["one", "again"]
