"""A target and its reference as a run has them, calibrated, with a laboratory for triage."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager

from fuzzer.bring_up import bring_up, laboratory
from fuzzer.calibration import calibrate
from fuzzer.differential import Differential
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from fuzzer.triage.findings import Case
from fuzzer.triage.lab import Lab
from fuzzer.triage.triage import Triage


class Bench:
    """Live servers of one command, to run plans on and to triage what is suspect."""

    def __init__(self, rig: Rig, lab: Lab) -> None:
        self.rig = rig
        self.lab = lab

    @property
    def differential(self) -> Differential:
        """The live target against the reference."""
        return self.lab.live

    def triage(self, known: Collection[str] = ()) -> Triage:
        """Triage as a run does it, with all the time it wants."""
        return Triage(self.lab, self.rig.numerics, known, out_of_time=lambda: False, elapsed=lambda: 0.0)

    def case(self, scenario: str, seed: int) -> Case:
        """What a finding of these servers says of where it comes from; no mitigations are tried."""
        return Case(engine=self.rig.engine, scenario=scenario, settings=self.rig.settings(), seed=seed, switches={})


@contextmanager
def bench(options: ServerOptions) -> Iterator[Bench]:
    """Servers that are gone afterwards."""
    with ExitStack() as stack:
        rig = Rig(options)
        differential, start_pool = bring_up(rig, stack)
        differential.noise = calibrate(differential, rig.numerics).noise
        yield Bench(rig, laboratory(rig, differential, start_pool, stack))


@contextmanager
def pair_of_servers(options: ServerOptions) -> Iterator[Differential]:
    """The comparison alone."""
    with bench(options) as servers:
        yield servers.differential
