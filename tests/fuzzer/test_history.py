"""What an earlier plan left in the server: found with the plan that left it, and blamed on no later one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from making import ask, path, plan_of

from fuzzer.bring_up import bring_up
from fuzzer.calibration import Numerics, calibrate
from fuzzer.differential import Differential
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from fuzzer.triage.findings import Case
from fuzzer.triage.lab import Lab
from fuzzer.triage.triage import Triage
from reports.record import FindingRecord, Settings
from scenarios.operations import Other, Task, kind

LEAVES = plan_of(Other(Task.CHAT))
"""A chat leaves a checkpoint of its first token in the slot of a model with a window ..."""
MEETS = plan_of(ask(path(0)), ask(path(0, ("a", 1))))
"""... and a prompt of two tokens, the first of them just computed, is given that checkpoint."""
SETTINGS = Settings("llama.cpp", "", [], "", [], "exact")


@pytest.fixture
def lab() -> Iterator[Lab]:
    with ExitStack() as stack:
        rig = Rig(ServerOptions(tiny="swa", adapters=()))
        live, pool = bring_up(rig, stack)
        live.noise = calibrate(live, rig.numerics).noise
        lab = Lab(live, rig.start_fresh, pool)
        stack.callback(lab.close)
        yield lab


def test_a_plan_that_is_wrong_after_another_only(lab: Lab) -> None:
    live: Differential = lab.live
    live.target.restart()
    assert live.run(MEETS).suspects == []
    live.run(LEAVES)
    outcome = live.run(MEETS)
    assert outcome.suspects
    triage = Triage(lab, Numerics.EXACT, (), out_of_time=lambda: False, elapsed=lambda: 0.0)
    case = Case(engine="llama.cpp", scenario="free", settings=SETTINGS, seed=1, switches={})
    finding = triage.investigate(outcome, case)
    assert isinstance(finding, FindingRecord)
    # Whatever left it there, a plain request does too.
    assert [kind(operation) for operation in finding.plan] == ["complete"] * 3
    assert {"request-before", "shared-prefix"} <= set(finding.necessary)
    assert live.run(MEETS).suspects == []
