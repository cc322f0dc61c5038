"""Cold start: how long ``stalefuzz run -x --scenario adapter-scale`` takes, and whether what it finds is minimal.

The command runs twice for every seed: with nothing kept from earlier commands, neither models nor rounding, and with
what the first of the two kept. Then each candidate that is one step simpler than the finding's plan runs on a live pair
of servers: none may still show the bug.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fuzzer.bench.card import Figure, Part, Setting
from fuzzer.bench.pair_of_servers import pair_of_servers
from fuzzer.differential import Differential
from fuzzer.finding_file import plan_of, read_finding
from fuzzer.options import ServerOptions
from scenarios.plans import Plan, compact
from scenarios.simplify import candidates

_SEEDS, _FULL_SEEDS = 3, 20
_GOAL_S = 5.0
_SHORTEST = 3
"""Requests of the smallest plan that shows the bug."""


class Cold(msgspec.Struct, frozen=True):
    """One seed; ``cpu_s`` is the first run's with its servers, ``plan`` is None where that found nothing."""

    seed: int
    wall_s: float
    cpu_s: float
    again_s: float
    """Of the second run."""
    plan: Plan | None
    simpler: int = 0
    """Plans one step simpler that show the bug as well."""

    @property
    def operations(self) -> int:
        """Of the finding's plan."""
        return len(self.plan.operations) if self.plan is not None else 0

    @property
    def minimal(self) -> bool:
        """Whether there is a finding, as short as can be, of which nothing can be taken away."""
        return self.operations == _SHORTEST and self.simpler == 0


def measure(setting: Setting) -> Part:
    """Time cold starts and check that each finding is minimal."""
    runs: list[Cold] = []
    with pair_of_servers(ServerOptions()) as differential:
        for seed in range(_FULL_SEEDS if setting.full else _SEEDS):
            runs.append(checked(differential, cold_run(seed)))
            setting.tell(f"seed {seed}: {runs[-1].wall_s:.1f} s, {runs[-1].operations} operations")
    return Part(
        name="cold-start",
        command=setting.command("cold-start"),
        figures=figures(runs),
        columns=["seed", "s", "CPU with servers, s", "again, s", "operations", "simpler plans that show it"],
        rows=[_row(run) for run in runs],
    )


def _row(run: Cold) -> list[str]:
    seconds = [f"{value:.1f}" for value in (run.wall_s, run.cpu_s, run.again_s)]
    return [str(run.seed), *seconds, str(run.operations), str(run.simpler)]


def figures(runs: Sequence[Cold]) -> list[Figure]:
    """The lines of the score card."""
    walls, again = [run.wall_s for run in runs], [run.again_s for run in runs]
    minimal = sum(1 for run in runs if run.minimal)
    return [
        Figure(
            what=f"cold start to a confirmed finding, {len(runs)} seeds",
            measured=f"median {statistics.median(walls):.1f} s, most {max(walls):.1f} s",
            goal=f"median at most {_GOAL_S:g} s",
            met=statistics.median(walls) <= _GOAL_S,
        ),
        Figure(
            what="the same command again, which re-uses the models and what was measured of rounding",
            measured=f"median {statistics.median(again):.1f} s, most {max(again):.1f} s",
        ),
        Figure(
            what=f"of those, findings of {_SHORTEST} requests of which nothing can be taken away",
            measured=f"{minimal} of {len(runs)}",
            goal="all",
            met=minimal == len(runs),
        ),
    ]


def cold_run(seed: int) -> Cold:
    """Run the command twice, with a cache folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = _timed(seed, Path(folder), "first")
        again, _ = _timed(seed, Path(folder), "again")
        files = list((Path(folder) / "first" / "findings").glob("*.json"))
        plan = plan_of(read_finding(files[0])) if files else None
    return Cold(seed, wall, cpu, again, plan)


def _timed(seed: int, folder: Path, out: str) -> tuple[float, float]:
    """Seconds of the clock and of the processors."""
    cpu, began = _children_cpu(), time.perf_counter()
    command = [sys.executable, "-P", "-m", "fuzzer.cli", "run", "-x", "--scenario", "adapter-scale"]
    cache = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    options = ["--seed", str(seed), "--out", str(folder / out)]
    subprocess.run([*command, *options], capture_output=True, check=False, env=cache)
    return time.perf_counter() - began, _children_cpu() - cpu


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def checked(differential: Differential, run: Cold) -> Cold:
    """The run with the simpler plans that show its bug counted."""
    if run.plan is None:
        return run
    return msgspec.structs.replace(run, simpler=len(still_shown(differential, run.plan)))


def still_shown(differential: Differential, plan: Plan) -> list[Plan]:
    """The plans one step simpler than ``plan`` that are still answered wrongly."""
    simpler = {compact(candidate) for candidate in candidates(plan)} - {plan}
    return [candidate for candidate in simpler if candidate.operations and differential.run(candidate).suspects]
