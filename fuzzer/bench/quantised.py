"""A real, quantised model in default numerics, where rounding moves one-token tails by up to 0.5 nats.

The bug: llama-server's own, with a random adapter off and on. It has to come through the whole ladder, pairs of plan
and control arm included. The control: the same requests at one scale, with the RAM cache off, which must not be blamed.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from fuzzer.bench.campaigns import campaign
from fuzzer.bench.card import Figure, Part, Setting
from fuzzer.bench.pair_of_servers import Bench, bench
from fuzzer.bench.sensitivity import planted
from fuzzer.bench.smollm2 import INSTALL, ONE_THREAD, random_lora, smollm2
from fuzzer.calibration import Numerics
from fuzzer.errors import CannotJudge
from fuzzer.options import ServerOptions
from reports.record import FindingRecord, RunRecord, SuspectRecord
from scenarios.library import single_scale

_CASES, _FULL_CASES = 1, 5
_STEPS, _FULL_STEPS = 30, 2000
_UNBOUNDED_S = 7 * 24 * 3600.0


class Planted(msgspec.Struct, frozen=True):
    """How one planted bug fared."""

    case: int
    found: bool
    words: str


def measure(setting: Setting) -> Part:
    """The bug, then the control; raises CannotJudge where the model is not there."""
    model = smollm2()
    if model is None:
        raise CannotJudge(f"the quantised model is not installed: {INSTALL}")
    servers = _options(model, random_lora(model, setting.folder, seed=setting.seed))
    found = _planted(servers, setting)
    control = msgspec.structs.replace(servers, server_flags=(*ONE_THREAD, "--cache-ram", "0"))
    record = campaign(
        control,
        time_s=_UNBOUNDED_S,
        seed=setting.seed,
        folder=setting.folder,
        max_steps=_FULL_STEPS if setting.full else _STEPS,
        scenarios=(single_scale.SCENARIO.name,),
    ).record
    return Part(
        name="quantised",
        command=setting.command("quantised"),
        figures=[_bug_figure(found), _control_figure(record), _noise_figure(record)],
        columns=["what", "found", "how"],
        rows=[[f"scale 0 against 1, case {one.case}", "yes" if one.found else "NO", one.words] for one in found],
    )


def _options(model: Path, adapter: Path) -> ServerOptions:
    return ServerOptions(model=model, adapters=(str(adapter),), numerics=Numerics.DEFAULT, server_flags=ONE_THREAD)


def _planted(servers: ServerOptions, setting: Setting) -> list[Planted]:
    found: list[Planted] = []
    with bench(servers) as live:
        for case in range(_FULL_CASES if setting.full else _CASES):
            found.append(_case(live, case, setting.seed))
            setting.tell(f"scale 0 against 1, case {case}: {found[-1].words}")
    return found


def _case(live: Bench, case: int, seed: int) -> Planted:
    # An odd case starts at scale 0.
    outcome = live.differential.run(planted(0.0, 1.0, 2 * case + 1, 1))
    if not outcome.suspects:
        return Planted(case, False, "no suspect")
    result = live.triage().investigate(outcome, live.case("adapter-scale", seed))
    match result:
        case FindingRecord():
            return Planted(
                case, True, f"{result.oracle}, {result.reproduced.k} of {result.reproduced.n}, {result.title}"
            )
        case SuspectRecord():
            return Planted(case, False, result.reason)
    return Planted(case, False, "taken for rounding")


def _bug_figure(found: list[Planted]) -> Figure:
    confirmed = sum(one.found for one in found)
    return Figure(
        what="stale adapter scale, 0 for 1, on SmolLM2-135M Q4_1 in default numerics: found and confirmed",
        measured=f"{confirmed} of {len(found)}",
        goal="all",
        met=confirmed == len(found),
    )


def _control_figure(record: RunRecord) -> Figure:
    blamed = len(record.findings) + len(record.suspects)
    return Figure(
        what="false alarms on SmolLM2-135M Q4_1 at one scale, default numerics, --cache-ram 0",
        measured=(
            f"{len(record.findings)} findings and {len(record.suspects)} suspects in {record.steps:,} steps, "
            f"{record.reuse.hits:,} with reuse"
        ),
        goal="none",
        met=record.reuse.hits > 0 and blamed == 0,
    )


def _noise_figure(record: RunRecord) -> Figure:
    largest = max((bound.largest for bound in record.noise), default=0.0)
    return Figure(
        what="rounding on SmolLM2-135M Q4_1, default numerics",
        measured=(
            f"up to {largest:.2g} nats; {record.rounding.suspects} differences beyond the bound taken for rounding"
        ),
    )
