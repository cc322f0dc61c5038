"""Baselines: findings that are known, why, and until when that is accepted.

A baseline is a TOML file with one ``[[known]]`` table a finding; a run.json or a finding file serves as one too.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import msgspec

from fuzzer.errors import UsageError
from fuzzer.toml_file import decode_toml, read_text

_ID = re.compile(r"[0-9a-f]+")


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One known finding."""

    id: str
    reason: str
    expires: datetime.date | None = None
    """The last day on which it passes."""


class Baseline(msgspec.Struct, frozen=True):
    """What is known today; ``expired`` entries no longer count."""

    known: tuple[Known, ...] = ()
    expired: tuple[Known, ...] = ()

    def reason(self, finding: str) -> str | None:
        """Why a finding is known; None for a new one."""
        return next((entry.reason for entry in self.known if entry.id == finding), None)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    known: list[Known] = []
    schema: int = 1


class _Named(msgspec.Struct, frozen=True):
    id: str
    title: str = ""


class _Json(msgspec.Struct, frozen=True):
    """A run.json, or a finding file."""

    findings: list[_Named] | None = None
    id: str | None = None
    title: str = ""


NOTHING = Baseline()


def read_baseline(path: Path, today: datetime.date) -> Baseline:
    """The baseline in a file; raises UsageError naming file, line and key."""
    text = read_text(path, "--baseline")
    entries = _from_json(path, text) if text.lstrip().startswith("{") else decode_toml(path, text, _File).known
    for entry in entries:
        if not _ID.fullmatch(entry.id):
            raise UsageError(f"{path}: {entry.id!r} is no finding's id; ids are hexadecimal, as in findings/<id>.json")
    expired = tuple(entry for entry in entries if entry.expires is not None and entry.expires < today)
    return Baseline(tuple(entry for entry in entries if entry not in expired), expired)


def _from_json(path: Path, text: str) -> list[Known]:
    try:
        content = msgspec.json.decode(text, type=_Json)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is no baseline: {error}") from None
    named = content.findings
    if named is None and content.id is not None:
        named = [_Named(content.id, content.title)]
    if named is None:
        raise UsageError(f"{path} is no baseline: it has neither findings nor an id")
    return [Known(entry.id, f"in {path.name}") for entry in named]
