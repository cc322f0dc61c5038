"""Throughput: requests a second on the target while the reference answers and answers are compared, and without that.

``python -m fuzzer.bench.throughput`` alternates two things in blocks, so that other load on the machine falls on both:
a run of the fuzzer, and a bare httpx loop that posts the very bodies of that run to a third server of the same kind
and reads the answers.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from resource import getpagesize
from tempfile import TemporaryDirectory
from typing import Any

import click
import httpx
import msgspec

from fuzzer.calibration import Numerics, calibrate
from fuzzer.campaign import Exploration
from fuzzer.differential import Differential
from fuzzer.model_files import model_files
from fuzzer.options import ServerOptions
from fuzzer.reference import Reference, ReferenceMode
from fuzzer.servers.launched import launch_embedded
from fuzzer.servers.llama_flags import parse_flags
from fuzzer.servers.llama_launch import reference_flags, target_flags
from fuzzer.servers.llama_server import LlamaServer
from fuzzer.servers.protocol import Request
from fuzzer.target import Target
from oracles.noise import Noise
from scenarios.library import single_scale


class Block(msgspec.Struct, frozen=True):
    """One block of both; ``cpu_s`` is this process's own time, ``resident_mb`` its memory afterwards."""

    requests: int
    fuzzing_s: float
    cpu_s: float
    resident_mb: float
    bare_s: float

    @property
    def ratio(self) -> float:
        """Speed of the target's leg, of the bare loop's."""
        return self.bare_s / self.fuzzing_s


class _Recording(LlamaServer):
    """Keeps the bodies that it sends."""

    def __init__(self, url: str, bodies: list[bytes]) -> None:
        super().__init__(url)
        self._bodies = bodies

    def body(self, request: Request) -> dict[str, Any]:
        body = super().body(request)
        self._bodies.append(msgspec.json.encode(body))
        return body


class Bench:
    """Three servers: target, reference, and one for the bare loop."""

    def __init__(self, stack: ExitStack) -> None:
        files = model_files(ServerOptions())
        slot_files = Path(stack.enter_context(TemporaryDirectory()))
        flags = target_flags(parse_flags(()), files, slot_files, exact=True)
        self.bodies: list[bytes] = []
        target = Target(
            lambda url: _Recording(url, self.bodies), process=stack.enter_context(launch_embedded(flags.argv()))
        )
        stack.callback(target.server.close)
        process = stack.enter_context(launch_embedded(reference_flags(flags).argv()))
        reference = Reference(LlamaServer(process.url), ReferenceMode.LAUNCHED)
        pool = stack.enter_context(ThreadPoolExecutor(1))
        self.differential = Differential(target, reference, Noise(()), pool=pool)
        self.differential.noise = calibrate(self.differential, Numerics.EXACT).noise
        self._bare = stack.enter_context(launch_embedded(flags.argv()))
        self._client = stack.enter_context(httpx.Client(base_url=self._bare.url, timeout=60, trust_env=False))

    def blocks(self, count: int, size: int) -> Iterator[Block]:
        """Both things in turn, ``size`` requests or a few more each."""
        for seed in range(count):
            self.bodies.clear()
            cpu, began = time.process_time(), time.perf_counter()
            self._fuzz(seed, size)
            cpu, fuzzing = time.process_time() - cpu, time.perf_counter() - began
            bare = self._post()
            yield Block(len(self.bodies), fuzzing, cpu, resident_mb(), bare)

    def _fuzz(self, seed: int, size: int) -> None:
        exploration = Exploration(
            self.differential,
            [single_scale.SCENARIO],
            seed,
            [],
            enough=lambda: len(self.bodies) >= size,
            ran=lambda pending: None,
        )
        if exploration.next_suspect() is not None:
            raise click.ClickException("the control scenario diverged: this measures nothing")

    def _post(self) -> float:
        began = time.perf_counter()
        for body in self.bodies:
            self._client.post("/completion", content=body, headers={"content-type": "application/json"}).read()
        return time.perf_counter() - began


def resident_mb() -> float:
    """Memory of this process that is in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize() / 2**20


@click.command()
@click.option("--blocks", default=8, show_default=True)
@click.option("--size", default=500, show_default=True, help="Requests a block.")
def main(blocks: int, size: int) -> None:
    """Measure throughput, own CPU time and memory of the fuzzer on the embedded llama-server."""
    with ExitStack() as stack:
        measured = list(Bench(stack).blocks(blocks, size))
    click.echo("requests   fuzzing      bare   ratio   own CPU   memory")
    for block in measured:
        click.echo(
            f"{block.requests:8} {block.requests / block.fuzzing_s:7.0f}/s {block.requests / block.bare_s:7.0f}/s"
            f" {block.ratio:7.2f} {1e3 * block.cpu_s / block.requests:6.2f} ms {block.resident_mb:5.0f} MB"
        )
    ratios = [block.ratio for block in measured]
    # The first block fills caches of fixed size.
    steps = sum(block.requests for block in measured[1:])
    growth = measured[-1].resident_mb - measured[0].resident_mb
    click.echo(f"ratio: median {statistics.median(ratios):.2f}, least {min(ratios):.2f} (goal: at least 0.5)")
    click.echo(f"memory: {growth:+.1f} MB over {steps} requests after the first block")


if __name__ == "__main__":
    main()
