"""``stalefuzz replay``: does a finding still show on this server?"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path

import msgspec
from rich.text import Text

from fuzzer.bring_up import bring_up, laboratory
from fuzzer.calibrated import calibrated
from fuzzer.errors import StalefuzzError
from fuzzer.exit_status import Exit
from fuzzer.finding_file import finding_paths, options_for, plan_of, read_finding
from fuzzer.interrupts import Interruption, interruptible
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from fuzzer.triage.lab import Lab
from oracles.arms import alone, control_arm
from reports.console import console
from reports.escaping import printable
from reports.record import FindingRecord
from scenarios.fitting import lacking, long_enough
from scenarios.plans import Plan

_TRIALS = 3


class Result(StrEnum):
    """What replaying a finding says."""

    REPRODUCED = "REPRODUCED"
    FIXED = "FIXED"
    ERROR = "ERROR"


class Replayed(msgspec.Struct, frozen=True):
    """A result and, in a few words, what it rests on."""

    result: Result
    why: str


def replay_command(files: Sequence[Path], options: ServerOptions) -> Exit:
    """Replay each file, folder or id and print one line for each finding; nothing is moved or deleted."""
    screen = console()
    results = []
    with interruptible() as interruption:
        for path in (path for given in files for path in finding_paths(given)):
            interruption.check()
            replayed = _replay_file(path, options, interruption)
            results.append(replayed.result)
            line = Text(f"{replayed.result:<10} ", style=_STYLES[replayed.result])
            line.append(f"{path}  {printable(replayed.why)}", style="default")
            screen.print(line, highlight=False, soft_wrap=True)
    return exit_of(results)


_STYLES = {Result.REPRODUCED: "bold red", Result.FIXED: "bold green", Result.ERROR: "bold yellow"}


def exit_of(results: Sequence[Result]) -> Exit:
    """Any finding that still shows weighs most, then anything that could not be told."""
    if Result.REPRODUCED in results:
        return Exit.FINDING
    return Exit.INCONCLUSIVE if Result.ERROR in results else Exit.CLEAN


def _replay_file(path: Path, options: ServerOptions, interruption: Interruption) -> Replayed:
    try:
        finding = read_finding(path)
        rig = Rig(options_for(finding, options))
        with ExitStack() as stack:
            return _replay(finding, rig, stack, interruption)
    except StalefuzzError as error:
        return Replayed(Result.ERROR, str(error))


def _replay(finding: FindingRecord, rig: Rig, stack: ExitStack, interruption: Interruption) -> Replayed:
    differential, pool = bring_up(rig, stack)
    lab = laboratory(rig, differential, pool, stack)
    calibrated(differential, rig, interruption.check)
    capabilities = differential.target.server.capabilities
    plan = long_enough(plan_of(finding), capabilities.block)
    lacks = lacking(plan, capabilities)
    if lacks is not None:
        return Replayed(Result.ERROR, lacks)
    replayed = _judged(finding, plan, lab)
    if differential.target.company.seen.changes:
        return Replayed(Result.ERROR, "somebody else changed scales or adapters of the server meanwhile")
    doubt = differential.reference.doubt
    if doubt is not None and replayed.result is Result.FIXED:
        return Replayed(Result.ERROR, doubt)
    return replayed


def _judged(finding: FindingRecord, plan: Plan, lab: Lab) -> Replayed:
    wrong = finding.wrong - 1
    lab.expect(_TRIALS)
    shown = [not lab.arm(plan, wrong).clean for _ in range(_TRIALS)]
    if any(shown) and _wrong_alone(finding, plan, lab):
        return Replayed(Result.ERROR, f"step {finding.wrong} is wrong without its history too: that is another bug")
    if any(shown):
        return Replayed(Result.REPRODUCED, f"step {finding.wrong} wrong in {sum(shown)} of {_TRIALS} runs")
    lawful = lab.arm(control_arm(plan, wrong) or plan, wrong)
    right = f"right in {_TRIALS} of {_TRIALS} runs"
    if not finding.reuse_witnessed:
        return Replayed(Result.FIXED, right)
    if lawful.reused:
        return Replayed(Result.FIXED, f"{right}; lawful reuse of {lawful.reused} tokens works")
    return Replayed(Result.ERROR, "nothing was reused, not even where that is lawful: this tests nothing")


def _wrong_alone(finding: FindingRecord, plan: Plan, lab: Lab) -> bool:
    """Whether the request is wrong without the history that the finding blames."""
    lone = alone(plan, finding.wrong - 1)
    needs_none = lone is not None and len(lone[0].operations) == len(plan.operations)
    return not needs_none and not lab.alone(plan, finding.wrong - 1).clean
