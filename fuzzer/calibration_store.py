"""Calibrations kept from one command to the next, in the user's cache (``$XDG_CACHE_HOME/stalefuzz/calibration``).

An entry's name is a digest of all that decides how a target rounds: engine, version and program, model and adapters by
content, flags, numerics, machine. A change of any of them is another entry. The file holds counts and sizes of rounding
alone, no flag, path, prompt or token.

It is not trusted. A file that cannot be read, that was edited, or that holds what no calibration gives is as good as
none; bounds are computed from it anew, and whoever uses it measures a little first (``calibrated``).
"""

from __future__ import annotations

import datetime
import hashlib
import math
from contextlib import suppress
from pathlib import Path

import msgspec

from fuzzer.models.model_cache import cache_root
from oracles.bands import BANDS
from oracles.noise import CLASSES, BandBound, Bound, Noise, held, safe
from reports.folder import write_atomically

_FORMAT = 1
"""Raise it with every change of what is measured or how."""
_LARGEST_FILE = 1 << 16
_MOST_SAMPLES = 1_000_000


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """How many samples of legal computation moved by how much, at most, in nats."""

    samples: int
    largest: float


class SeenClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was seen of one class of requests."""

    situation: str
    seen: Seen
    bands: tuple[Seen, ...]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One calibration; ``seal`` is a digest of the rest and of the entry's name."""

    format: int
    measured: datetime.date
    classes: tuple[SeenClass, ...]
    seal: str = ""

    @property
    def noise(self) -> Noise:
        """The bounds that these samples give."""
        return held(tuple(_bound(one) for one in self.classes))


class CalibrationStore:
    """The entries below ``folder``."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or cache_root().parent / "calibration"

    def read(self, identity: str, ceiling: float) -> Entry | None:
        """The calibration of a target; None where there is none to be relied on.

        ``ceiling`` is the most that legal computation is taken to move a log probability by.
        """
        path = self._path(identity)
        try:
            if path.stat().st_size > _LARGEST_FILE:
                return None
            entry = msgspec.json.decode(path.read_bytes(), type=Entry)
        except (OSError, msgspec.DecodeError):
            return None
        return entry if _is_sound(entry, identity, ceiling) else None

    def keep(self, identity: str, noise: Noise) -> None:
        """Write a calibration down; where nothing can be written, the next command measures again."""
        entry = Entry(_FORMAT, datetime.date.today(), tuple(_seen(bound) for bound in noise.bounds))
        entry = msgspec.structs.replace(entry, seal=_seal(entry, identity))
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self._path(identity), msgspec.json.encode(entry) + b"\n")

    def _path(self, identity: str) -> Path:
        return self._folder / f"{identity}.json"


def _seal(entry: Entry, identity: str) -> str:
    unsealed = msgspec.structs.replace(entry, seal="")
    return hashlib.sha256(identity.encode() + msgspec.json.encode(unsealed)).hexdigest()


def _is_sound(entry: Entry, identity: str, ceiling: float) -> bool:
    """Whether it is one of ours, unchanged, and within what a calibration can give."""
    if entry.format != _FORMAT or entry.seal != _seal(entry, identity):
        return False
    names = [one.situation for one in entry.classes]
    return (
        bool(names)
        and names == [name for name in CLASSES if name in names]
        and entry.measured <= datetime.date.today()
        and all(_is_possible(one, ceiling) for one in entry.classes)
    )


def _is_possible(one: SeenClass, ceiling: float) -> bool:
    sound = all(
        math.isfinite(seen.largest) and 0 <= seen.largest <= ceiling and 0 <= seen.samples < _MOST_SAMPLES
        for seen in (one.seen, *one.bands)
    )
    within = all(seen.samples <= one.seen.samples and seen.largest <= one.seen.largest for seen in one.bands)
    return sound and within and one.seen.samples > 0 and len(one.bands) in (0, len(BANDS))


def _seen(bound: Bound) -> SeenClass:
    bands = tuple(Seen(band.samples, band.largest) for band in bound.bands)
    return SeenClass(bound.situation, Seen(bound.samples, bound.largest), bands)


def _bound(one: SeenClass) -> Bound:
    bands = tuple(
        BandBound(name, safe(seen.largest), seen.samples, seen.largest)
        for name, seen in zip(BANDS, one.bands, strict=False)
    )
    return Bound(one.situation, safe(one.seen.largest), one.seen.samples, one.seen.largest, bands)
