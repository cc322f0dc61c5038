"""A llama-server that takes up its old state with other weights: wrong from fresh state, and right in every arm."""

from __future__ import annotations

from pathlib import Path

import stale_wake
from making import ask, path, plan_of

from fuzzer.bench.pair_of_servers import bench
from fuzzer.options import ServerOptions
from oracles.arms import control_arm
from scenarios.operations import ReloadWeights
from scenarios.scenario import FALLS_ASLEEP

P = path(0, ("a", 9))


def test_stale_state_under_other_weights(tmp_path: Path) -> None:
    plan, wrong = plan_of(ask(P, 0.0), ReloadWeights(1), ask(P, 0.0)), 2
    control = control_arm(plan, wrong)
    assert control is not None
    options = ServerOptions(binary=stale_wake.executable(tmp_path), server_flags=FALLS_ASLEEP)
    with bench(options) as servers:
        shown = servers.lab.arm(plan, wrong)
        alone = servers.lab.alone(plan, wrong)
        lawful = servers.lab.arm(control, wrong)
    assert (shown.clean, shown.reused) == (False, P.length - 1)
    assert shown.delta is not None
    assert shown.delta > 1
    assert (alone.clean, alone.reused) == (True, 0)
    assert (lawful.clean, lawful.reused) == (True, P.length - 1)
