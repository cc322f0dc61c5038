"""Older xllamacpp wheels, each in a folder of its own in the user's cache."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from fuzzer.errors import CannotJudge
from fuzzer.models.model_cache import cache_root
from fuzzer.servers.wheel import WHEEL


def installed() -> str:
    """The version of the wheel that runs where no other is asked for."""
    return version(WHEEL)


def wheel_folder(number: str) -> Path | None:
    """The folder with that version of the wheel, fetched with pip at first use; None for the installed one.

    Raises CannotJudge where it cannot be had.
    """
    if number == installed():
        return None
    folder = cache_root().parent / "wheels" / number
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
            _fetch(number, Path(fresh) / number)
            (Path(fresh) / number).rename(folder)
    return folder


def _fetch(number: str, folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    done = subprocess.run([*pip, f"{WHEEL}=={number}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["pip failed"]
        raise CannotJudge(f"{WHEEL} {number} cannot be had: {lines[-1]}")
