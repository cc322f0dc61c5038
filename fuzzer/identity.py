"""What decides how a target rounds, beside its own settings: the machine that it computes on."""

from __future__ import annotations

import hashlib
import platform
from contextlib import suppress
from pathlib import Path

import msgspec

from fuzzer.cores import usable_cores
from reports.record import Settings


def digest_of(settings: Settings, program: str, arguments: tuple[str, ...]) -> str:
    """One name for a launched server as it computes here; ``arguments`` are the user's own flags."""
    parts = (settings, program, arguments, _machine())
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]


def program_in(path: Path) -> str:
    """An executable as it is now: another build under the same name is another program."""
    status = path.stat()
    return f"{path.resolve()} {status.st_size} {status.st_mtime_ns}"


def _machine() -> tuple[str, ...]:
    """Kernels are chosen by the processor's features, and work is split over the cores that may be used."""
    return (platform.system(), platform.machine(), platform.processor(), _processor(), str(usable_cores()))


def _processor() -> str:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(dict.fromkeys(line for line in lines if line.startswith(("model name", "flags", "Features"))))
    return ""
