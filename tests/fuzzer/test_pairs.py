"""Pairs on a live server: stale state wins them all, lawful reuse does not, and only arms of one shape are compared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from making import ask, path, plan_of

from fuzzer.bench.pair_of_servers import pair_of_servers
from fuzzer.calibration import Numerics
from fuzzer.differential import Differential
from fuzzer.options import ServerOptions
from fuzzer.triage.paired import run_pairs
from oracles.sequential import FALSE_ALARMS, Outcome
from scenarios.plans import Plan

P, Q = path(0, ("a", 12)), path(1, ("b", 9))


@pytest.fixture(scope="module")
def live() -> Iterator[Differential]:
    flags = ("--threads", "1", "--threads-batch", "1")
    with pair_of_servers(ServerOptions(numerics=Numerics.DEFAULT, server_flags=flags)) as differential:
        yield differential


def pairs_of(live: Differential, plan: Plan, wrong: int) -> tuple[Outcome, int, int]:
    reused = live.run(plan).arm(wrong).reused
    assert reused
    paired = run_pairs(live, plan, wrong, reused, FALSE_ALARMS, lambda: False)
    return paired.outcome(FALSE_ALARMS), paired.pairs, paired.mismatched


def test_stale_state_wins_every_pair(live: Differential) -> None:
    outcome, pairs, mismatched = pairs_of(live, plan_of(ask(P, 0.0, 0.0), ask(Q, 0.0, 1.0), ask(P, 0.0, 1.0)), 2)
    assert outcome is Outcome.FINDING
    assert (pairs <= 12, mismatched) == (True, 0)


def test_lawful_reuse_is_noise(live: Differential) -> None:
    """One environment: the plan is its own control arm, and the same reuse in two steps stands in for it."""
    outcome, pairs, mismatched = pairs_of(live, plan_of(ask(P, 0.5, 0.0), ask(Q, 0.5, 0.0), ask(P, 0.5, 0.0)), 2)
    assert outcome is not Outcome.FINDING
    assert (pairs >= 10, mismatched) == (True, 0)
