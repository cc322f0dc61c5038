"""Built models on disk; an entry counts only while every file in it is the one its checksums name.

Whoever finds an entry missing or damaged builds it again in a folder of its own and moves the files in one by one.
Builders of one entry write the same bytes, so none of them can harm another, or a server that has a file open.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from fuzzer.errors import UsageError

_CHECKSUMS = "SHA256SUMS"


def cache_root() -> Path:
    """Where this user's models are kept."""
    return _user_cache() / "stalefuzz" / "models"


def ensure(entry: Path, names: Sequence[str], build: Callable[[Path], None]) -> None:
    """Make the folder ``entry`` hold the files ``names``, which ``build`` writes into the folder it is given."""
    if _is_sound(entry, names):
        return
    try:
        _rebuild(entry, names, build)
    except OSError as error:
        # Windows refuses to replace a file that is open: then another process has published the entry and uses it.
        if not _is_sound(entry, names):
            raise UsageError(_unwritable(entry, error)) from error


def _rebuild(entry: Path, names: Sequence[str], build: Callable[[Path], None]) -> None:
    entry.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=entry, prefix="building-") as folder:
        fresh = Path(folder)
        build(fresh)
        (fresh / _CHECKSUMS).write_text(_checksums(fresh, names), encoding="utf-8", newline="\n")
        for name in (*names, _CHECKSUMS):
            (fresh / name).replace(entry / name)


def _is_sound(entry: Path, names: Sequence[str]) -> bool:
    try:
        return (entry / _CHECKSUMS).read_bytes() == _checksums(entry, names).encode()
    except OSError:
        return False


def _checksums(folder: Path, names: Sequence[str]) -> str:
    return "".join(f"{_sha256(folder / name)}  {name}\n" for name in names)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _user_cache() -> Path:
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches"
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    named = Path(os.environ.get(variable, ""))
    # A relative XDG path is to be ignored: freedesktop.org, XDG Base Directory Specification.
    return named if named.is_absolute() else _home() / ".cache"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise UsageError("no home folder to keep the tiny models in; set HOME") from error


def _unwritable(entry: Path, error: OSError) -> str:
    return f"cannot write the tiny model to {entry}: {error.strerror or error}; delete that folder or make it writable"
