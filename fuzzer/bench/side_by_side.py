"""The fuzzer and a bare HTTP loop beside it, in turn on servers of one kind, with the CPU time that each part takes.

Both are run in blocks, so that other load on the machine falls on both. The bare loop posts with httpx the very bodies
of the block before to a third server, and reads the answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import msgspec

from fuzzer.bench.memory import resident_mb
from fuzzer.calibration import Numerics, calibrate
from fuzzer.campaign import Exploration
from fuzzer.differential import Differential, Outcome, Pending
from fuzzer.errors import CannotJudge
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
from oracles.observations import Trace
from scenarios.plans import Plan
from scenarios.scenario import Scenario


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One block of both. Times are seconds over all of its requests, those with ``cpu`` of this process's CPUs."""

    requests: int
    fuzzing_s: float
    bare_s: float
    process_cpu_s: float
    """Of all threads, while fuzzing."""
    generation_cpu_s: float
    """Drawing plans and steering, Hypothesis included."""
    target_cpu_s: float
    """Sending to the target, reading its answers, keeping the trace."""
    reference_cpu_s: float
    """The same for the reference."""
    verdict_cpu_s: float
    bare_cpu_s: float
    resident_mb: float
    """Memory after the block."""

    @property
    def ratio(self) -> float:
        """Speed of the target's leg, of the bare loop's."""
        return self.bare_s / self.fuzzing_s

    def ms(self, seconds: float) -> float:
        """Milliseconds a request."""
        return 1e3 * seconds / self.requests


class _Recording(LlamaServer):
    """Keeps the bodies that it sends."""

    def __init__(self, url: str, bodies: list[bytes]) -> None:
        super().__init__(url)
        self._bodies = bodies

    def body(self, request: Request) -> dict[str, Any]:
        body = super().body(request)
        self._bodies.append(msgspec.json.encode(body))
        return body


class _Timed(Differential):
    """Adds up the CPU time of the calling thread in the target's leg and in verdicts."""

    target_cpu_s = 0.0
    verdict_cpu_s = 0.0

    def begin(self, plan: Plan, *, reuse: bool = True) -> Pending:
        began = time.thread_time()
        pending = super().begin(plan, reuse=reuse)
        self.target_cpu_s += time.thread_time() - began
        return pending

    def judged(self, plan: Plan, ours: Trace, theirs: Trace) -> Outcome:
        began = time.thread_time()
        outcome = super().judged(plan, ours, theirs)
        self.verdict_cpu_s += time.thread_time() - began
        return outcome


class SideBySide:
    """Three servers: target, reference, and one for the bare loop."""

    def __init__(self, stack: ExitStack, *flags: str) -> None:
        files = model_files(ServerOptions())
        slot_files = Path(stack.enter_context(TemporaryDirectory()))
        launched = target_flags(parse_flags(flags), files, slot_files, exact=True)
        self._bodies: list[bytes] = []
        target = Target(
            lambda url: _Recording(url, self._bodies), process=stack.enter_context(launch_embedded(launched.argv()))
        )
        stack.callback(target.server.close)
        process = stack.enter_context(launch_embedded(reference_flags(launched).argv()))
        reference = Reference(LlamaServer(process.url), ReferenceMode.LAUNCHED)
        stack.callback(reference.close)
        self._pool = stack.enter_context(ThreadPoolExecutor(1))
        self.differential = _Timed(target, reference, Noise(()), pool=self._pool)
        self.differential.noise = calibrate(self.differential, Numerics.EXACT).noise
        self._bare = stack.enter_context(launch_embedded(launched.argv()))
        self._client = stack.enter_context(httpx.Client(base_url=self._bare.url, timeout=60, trust_env=False))

    def blocks(self, scenario: Scenario, count: int, size: int) -> Iterator[Block]:
        """Both things in turn, ``size`` requests or a few more each; raises CannotJudge where anything diverges."""
        return (self._block(scenario, seed, size) for seed in range(count))

    def _block(self, scenario: Scenario, seed: int, size: int) -> Block:
        timed = self.differential
        self._bodies.clear()
        timed.target_cpu_s = timed.verdict_cpu_s = 0.0
        reference = self._reference_cpu()
        own, process, began = time.thread_time(), time.process_time(), time.perf_counter()
        self._fuzz(scenario, seed, size)
        own, process, fuzzing = time.thread_time() - own, time.process_time() - process, time.perf_counter() - began
        reference = self._reference_cpu() - reference
        bare_cpu, began = time.thread_time(), time.perf_counter()
        self._post()
        return Block(
            requests=len(self._bodies),
            fuzzing_s=fuzzing,
            bare_s=time.perf_counter() - began,
            process_cpu_s=process,
            generation_cpu_s=own - timed.target_cpu_s - timed.verdict_cpu_s,
            target_cpu_s=timed.target_cpu_s,
            reference_cpu_s=reference,
            verdict_cpu_s=timed.verdict_cpu_s,
            bare_cpu_s=time.thread_time() - bare_cpu,
            resident_mb=resident_mb(),
        )

    def _reference_cpu(self) -> float:
        """CPU time of the one thread that asks the reference."""
        return self._pool.submit(time.thread_time).result()

    def _fuzz(self, scenario: Scenario, seed: int, size: int) -> None:
        exploration = Exploration(
            self.differential,
            [scenario],
            seed,
            [],
            enough=lambda: len(self._bodies) >= size,
            ran=lambda pending: None,
        )
        if exploration.next_suspect() is not None:
            raise CannotJudge(
                f"the control {scenario.name} diverged on the embedded llama-server: this measures nothing"
            )

    def _post(self) -> None:
        for body in self._bodies:
            self._client.post("/completion", content=body, headers={"content-type": "application/json"}).read()
