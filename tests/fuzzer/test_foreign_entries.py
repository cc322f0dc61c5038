"""Hits on what another run left in a server of the user's: noticed, and neither a finding nor a suspect."""

from __future__ import annotations

from contextlib import ExitStack

from running import llama_server

from fuzzer.bring_up import bring_up, laboratory
from fuzzer.calibrated import calibrated
from fuzzer.calibration import Numerics
from fuzzer.differential import Differential
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from fuzzer.roots import RootPool
from fuzzer.triage.findings import Case
from fuzzer.triage.triage import Foreign, Triage
from oracles.judgement import Oracle
from reports.record import Settings
from scenarios.environment import AdapterScale
from scenarios.operations import Complete
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment

OFF = (AdapterScale(0, 0.0), AdapterScale(1, 0.0))
PLAN = Plan((Complete(prompt=Prompt(0, (Segment("a", 20),)), scales=OFF, tokens=1),))
SETTINGS = Settings("llama.cpp", "", [], "", [], "")


def begin_at(live: Differential, root: int) -> None:
    live.target.roots = RootPool(live.target.server.capabilities.space, root)


def test_a_prompt_that_an_earlier_run_asked() -> None:
    with llama_server() as server, ExitStack() as stack:
        rig = Rig(ServerOptions(target=server.url))
        live, pool = bring_up(rig, stack)
        calibrated(live, rig)
        begin_at(live, 500)
        assert live.run(PLAN).suspects == []
        begin_at(live, 500)
        outcome = live.begin(PLAN).outcome()
        assert [suspect.oracle for suspect in outcome.suspects] == [Oracle.ACCOUNTING]
        begin_at(live, 700)
        lab = laboratory(rig, live, pool, stack)
        triage = Triage(lab, Numerics.DEFAULT, (), out_of_time=lambda: False, elapsed=lambda: 0.0)
        case = Case(engine="llama.cpp", scenario="plain", settings=SETTINGS, seed=1, switches={})
        assert triage.investigate(outcome, case) == Foreign()
        others = rig.others_record()
        assert others is not None
        assert others.earlier == 1
        begin_at(live, 500)
        assert live.run(PLAN).suspects == []
        others = rig.others_record()
        assert others is not None
        assert others.earlier == 2
