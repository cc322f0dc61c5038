"""Baselines that the fuzzer must beat: the same servers, executor and oracles, but plans drawn with less thought.

A baseline's score is its first confirmed suspect: one that diverges again when its plan runs on fresh roots. It needs
to be neither reduced nor explained.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

import msgspec

from fuzzer.bench.public_shapes import public_shapes
from fuzzer.bench.uniform import uniform_plans
from fuzzer.bring_up import bring_up
from fuzzer.calibration import calibrate
from fuzzer.clock import Clock
from fuzzer.differential import Differential, Outcome, Pending
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from scenarios.capabilities import Capabilities
from scenarios.plans import Plan

Baseline = Callable[[Capabilities, random.Random], Iterator[Plan]]
"""Plans without end for a server."""

BASELINES: dict[str, Baseline] = {
    "random": uniform_plans,
    "script": lambda capabilities, rng: public_shapes(capabilities),
}
"""Uniformly random sequences; the shapes of public reports, at one length after another."""


class Reached(msgspec.Struct, frozen=True):
    """When a baseline had its first confirmed suspect, and after how many requests to the target; None: never."""

    seconds: float | None = None
    requests: int | None = None


def search(baseline: Baseline, servers: ServerOptions, *, time_s: float, seed: int) -> Reached:
    """Run the plans of a baseline until one is wrong twice, or time is up; the start of the servers counts."""
    clock = Clock(time_s)
    with ExitStack() as stack:
        rig = Rig(servers)
        differential, _ = bring_up(rig, stack)
        differential.noise = calibrate(differential, rig.numerics).noise
        plans = baseline(differential.target.server.capabilities, random.Random(seed))
        for outcome in _outcomes(differential, plans):
            if clock.over():
                break
            if outcome.suspects and differential.run(outcome.plan).suspects:
                return Reached(round(clock.elapsed(), 3), differential.counts.target)
    return Reached()


def _outcomes(differential: Differential, plans: Iterable[Plan]) -> Iterator[Outcome]:
    """Each plan judged while the target is at the next one, as in a campaign."""
    before: Pending | None = None
    for plan in plans:
        begun = differential.begin(plan)
        if before is not None:
            yield before.outcome()
        before = begun
