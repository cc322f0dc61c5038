"""``stalefuzz probe``: what a run on this target could see, before running it."""

from __future__ import annotations

from contextlib import ExitStack

from fuzzer.bring_up import bring_up
from fuzzer.calibrated import calibrated
from fuzzer.calibration import in_words
from fuzzer.exit_status import Exit
from fuzzer.interrupts import interruptible
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from fuzzer.unseen import beside_itself
from reports.console import console
from reports.events import Probed
from reports.prose import by_reason
from reports.terminal import probe_block
from scenarios.library.catalogue import SCENARIOS


def probe_command(options: ServerOptions) -> Exit:
    """Start or reach the servers, calibrate, print; raises StalefuzzError."""
    rig = Rig(options)
    screen = console()
    screen.print(rig.in_words(), style="dim", highlight=False)
    with interruptible() as interruption, ExitStack() as stack:
        differential, _ = bring_up(rig, stack)
        calibration = calibrated(differential, rig, interruption.check)
        record = Probed(
            0.0,
            rig.target_record(),
            rig.reference_record(),
            calibration.noise,
            rig.numerics,
            0,
            calibration.measured,
        )
        capabilities = differential.target.server.capabilities
        screen.print(probe_block(record), highlight=False, soft_wrap=True, end="")
        largest = calibration.noise.largest
        exact = (
            "bit-exact" if largest == 0 else f"not bit-exact: legal computation moves logprobs by up to {largest:.1e}"
        )
        screen.print(f"  alone      {exact}; {calibration.hits} requests reused something", highlight=False)
        if differential.reference.doubt is not None:
            screen.print(f"  note       {differential.reference.doubt}", highlight=False)
        if calibration.silent_adapters:
            screen.print(f"  note       {in_words(calibration.silent_adapters)} by accounting only", highlight=False)
        for why, what in by_reason(beside_itself(rig.reference_record().mode, capabilities)).items():
            screen.print(f"  cannot see {', '.join(what)}: {why}", highlight=False, soft_wrap=True)
        for scenario in SCENARIOS:
            lacks = scenario.missing(capabilities)
            if lacks is not None:
                screen.print(f"  cannot     {scenario.name}: {lacks}", highlight=False)
    return Exit.CLEAN
