"""Rounding that is met once in many requests: ended by pairs, not by replaying all that went before it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from making import ask, path, plan_of

from fuzzer.bench.pair_of_servers import Bench, bench
from fuzzer.calibration import Numerics
from fuzzer.differential import Outcome
from fuzzer.options import ServerOptions
from fuzzer.triage.triage import Rounding
from oracles.judgement import Suspect, judge
from oracles.observations import Observation, Trace
from reports.record import SuspectRecord

PLAN = plan_of(ask(path(0, ("a", 40))), ask(path(0, ("a", 40), ("b", 12))))
WRONG = 1


@pytest.fixture(scope="module")
def servers() -> Iterator[Bench]:
    """A sound server in bf16, which answers one request in ten otherwise by some 3e-2."""
    flags = ("--flavour", "llama", "--family", "swa", "--numerics", "bf16")
    with bench(ServerOptions(launch="zoo", numerics=Numerics.DEFAULT, server_flags=flags)) as servers:
        yield servers


def moved(trace: Trace, by: float) -> Trace:
    """The same with the likeliest token of the wrong answer less likely."""
    step = trace.steps[WRONG]
    assert isinstance(step.outcome, Observation)
    position = step.outcome.positions[0]
    best = position.top[0]
    top = [msgspec.structs.replace(best, logprob=best.logprob - by), *position.top[1:]]
    answer = msgspec.structs.replace(step.outcome, positions=[msgspec.structs.replace(position, top=top)])
    steps = [*trace.steps[:WRONG], msgspec.structs.replace(step, outcome=answer), *trace.steps[WRONG + 1 :]]
    return msgspec.structs.replace(trace, steps=steps)


def suspected(servers: Bench, by: float) -> Outcome:
    """A run of the plan, after others, whose second answer is off; it does not come back."""
    live = servers.differential
    # What was asked to measure rounding is history too, and would be replayed.
    live.target.restart()
    for _ in range(12):
        live.run(PLAN)
    outcome = live.run(PLAN)
    ours = moved(outcome.ours, by)
    suspects: list[Suspect] = judge(ours, outcome.theirs, live.noise)
    assert [suspect.step for suspect in suspects] == [WRONG]
    return Outcome(outcome.plan, ours, outcome.theirs, suspects)


def test_within_what_any_lawful_request_moves(servers: Bench) -> None:
    live = servers.differential
    # Nothing of its own class is known to round as much as tokens computed one by one do.
    bound = live.noise.bound()
    outcome = suspected(servers, bound * 0.9)
    before = live.counts.target
    assert servers.triage()._investigated(outcome, servers.case("plain", 1)) == Rounding()
    # Forty pairs of two plans with two requests each, and no plan of those before.
    assert live.counts.target - before <= 200


def test_far_beyond_it_is_not_called_rounding(servers: Bench) -> None:
    """A stale answer once in a thousand requests is in no pair that is run afterwards."""
    bound = servers.differential.noise.bound()
    outcome = suspected(servers, max(5.0, 4 * bound))
    result = servers.triage().investigate(outcome, servers.case("plain", 1))
    assert isinstance(result, SuspectRecord)
    assert result.step == WRONG + 1
