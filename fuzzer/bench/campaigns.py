"""The fuzzer as a user runs it, with nothing written: what every part measures by."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fuzzer.interrupts import Interruption
from fuzzer.options import RunOptions, ServerOptions
from fuzzer.rig import Rig
from fuzzer.run import Run
from reports.events import Event, Explored, Found, Suspected
from reports.record import RunRecord


class Campaign(msgspec.Struct, frozen=True):
    """What a run gave; ``requests_to_suspect`` were sent before its first finding diverged."""

    record: RunRecord
    requests_to_suspect: int | None


def campaign(
    servers: ServerOptions,
    *,
    time_s: float,
    seed: int,
    folder: Path,
    max_steps: int | None = None,
    fail_fast: bool = False,
    scenarios: tuple[str, ...] = (),
) -> Campaign:
    """The default campaign, or that of ``scenarios``; to its end or, with ``fail_fast``, up to its first finding."""
    options = RunOptions(
        servers=servers,
        time_s=time_s,
        max_steps=max_steps,
        seed=seed,
        fail_fast=fail_fast,
        scenarios=scenarios,
        out=folder,
    )
    watch = _Watch()
    record = Run(options, Rig(servers), Interruption(), watch.see, lambda record: None).execute()
    return Campaign(record, watch.requests)


class _Watch:
    """How many requests had been sent when that diverged which became the first finding."""

    def __init__(self) -> None:
        self.requests: int | None = None
        self._sent = 0
        self._suspected = 0

    def see(self, event: Event) -> None:
        """Take note of one event of the run."""
        match event:
            case Explored(target_requests=sent):
                self._sent = sent
            case Suspected():
                self._suspected = self._sent
            case Found() if self.requests is None:
                self.requests = self._suspected
