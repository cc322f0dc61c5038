"""What a command was asked to do, after parsing and before anything is started."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fuzzer.calibration import Numerics
from fuzzer.reference import ReferenceMode
from fuzzer.servers.profiles import Profile


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which servers to use."""

    launch: str | None = None
    target: str | None = None
    binary: Path | None = None
    engine: str | None = None
    reference: str | None = None
    model: Path | None = None
    tiny: str | None = None
    adapters: tuple[str, ...] | None = None
    """None: what the model brings; empty: none at all."""
    numerics: Numerics | None = None
    allow_admin: bool = False
    """Operations that other users of a ``--target`` notice."""
    max_inflight: int | None = None
    rate: float | None = None
    """Requests a second."""
    ca_file: Path | None = None
    recalibrate: bool = False
    """Measure rounding anew, whatever is kept from earlier commands."""
    profiles: tuple[Profile, ...] = ()
    """Engines that the user described in stalefuzz.toml."""
    server_flags: tuple[str, ...] = ()
    """For the launched server, in its own spelling."""
    wheel: Path | None = None
    """A folder with another xllamacpp wheel than the installed one; the benchmark's, no flag sets it."""

    @property
    def second_url(self) -> str | None:
        """The server that is the reference of a ``--target``; None where that is its own."""
        return None if self.reference == ReferenceMode.BYPASS else self.reference

    @property
    def swaps(self) -> bool:
        """Whether adapters of a ``--target`` are loaded over each other: a second server would not know of it."""
        return self.allow_admin and self.second_url is None


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with them."""

    servers: ServerOptions
    time_s: float = 60.0
    max_steps: int | None = None
    fail_fast: bool = False
    seed: int
    scenarios: tuple[str, ...] = ()
    out: Path = Path("stalefuzz-out")
    baseline: Path | None = None
    corpus: Path | None = None
    resume: bool = False
    """Go on with the run in ``out``."""
    redact: bool = False
