"""Cold start: how long ``stalefuzz run -x --scenario adapter-scale`` takes, and whether what it finds is minimal.

``python -m fuzzer.bench.cold_start`` runs the command once for every seed, then runs each candidate that is one step
simpler than the finding's plan on a live pair of servers: none may still show the bug.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import msgspec

from fuzzer.calibration import calibrate
from fuzzer.differential import Differential
from fuzzer.finding_file import plan_of, read_finding
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from oracles.noise import Noise
from scenarios.plans import Plan, compact
from scenarios.simplify import ASPECTS


class Cold(msgspec.Struct, frozen=True):
    """One run of the command; ``cpu_s`` counts its servers too, ``plan`` is None where it found nothing."""

    seed: int
    wall_s: float
    cpu_s: float
    plan: Plan | None


def cold_run(seed: int) -> Cold:
    """Run the command in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        cpu, began = _children_cpu(), time.perf_counter()
        command = [sys.executable, "-P", "-m", "fuzzer.cli", "run", "-x", "--scenario", "adapter-scale"]
        subprocess.run([*command, "--seed", str(seed), "--out", folder], capture_output=True, check=False)
        wall, cpu = time.perf_counter() - began, _children_cpu() - cpu
        files = list((Path(folder) / "findings").glob("*.json"))
        plan = plan_of(read_finding(files[0])) if files else None
    return Cold(seed, wall, cpu, plan)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def live_pair() -> Iterator[Differential]:
    """Target and reference as the command starts them."""
    with ExitStack() as stack:
        rig = Rig(ServerOptions())
        stack.callback(rig.stop)
        pool = stack.enter_context(ThreadPoolExecutor(1))
        target, reference = rig.start(stack.enter_context(ThreadPoolExecutor(2)))
        differential = Differential(target, reference, Noise(()), pool=pool)
        differential.noise = calibrate(differential, rig.numerics).noise
        yield differential


def still_shown(differential: Differential, plan: Plan) -> list[Plan]:
    """The plans one step simpler than ``plan`` that are still answered wrongly."""
    candidates = {compact(candidate) for aspect in ASPECTS for candidate in aspect(plan)} - {plan}
    return [candidate for candidate in candidates if candidate.operations and differential.run(candidate).suspects]


@click.command()
@click.option("--seeds", default=20, show_default=True)
def main(seeds: int) -> None:
    """Time cold starts and check that each finding is three requests long and minimal."""
    runs: list[Cold] = []
    good = True
    with live_pair() as differential:
        for seed in range(seeds):
            run = cold_run(seed)
            runs.append(run)
            simpler = still_shown(differential, run.plan) if run.plan is not None else []
            operations = len(run.plan.operations) if run.plan is not None else 0
            good = good and operations == 3 and not simpler
            click.echo(
                f"seed {seed:3}  {run.wall_s:5.1f} s  CPU {run.cpu_s:5.1f} s  {operations} operations  "
                f"{len(simpler)} simpler plans show it too"
            )
    walls, cpus = [run.wall_s for run in runs], [run.cpu_s for run in runs]
    click.echo(f"wall: median {statistics.median(walls):.1f} s, most {max(walls):.1f} s (goal: 6 and 10)")
    click.echo(f"CPU:  median {statistics.median(cpus):.1f} s, most {max(cpus):.1f} s")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
