"""Which llama.cpp build the embedded server is: the library does not know, only the wheel's version does."""

from __future__ import annotations

import re
from importlib.machinery import PathFinder
from importlib.metadata import distributions
from pathlib import Path

WHEEL = "xllamacpp"


def engine_version(folder: Path | None = None) -> str:
    """For example ``b11549 (xllamacpp 2026.10.11549)``; the last number of the wheel's version is llama.cpp's build.

    ``folder`` holds another wheel than the one that would be imported.
    """
    version = _wheel_version(folder)
    if version is None:
        return f"unknown build ({WHEEL})"
    return f"b{version.rpartition('.')[2]} ({WHEEL} {version})"


def _wheel_version(folder: Path | None) -> str | None:
    """Looked up beside the module that would be imported: a PYTHONPATH folder may come before the installed one."""
    spec = PathFinder.find_spec(WHEEL, None if folder is None else [str(folder)])
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    for wheel in distributions(name=WHEEL, path=[str(package.parent)]):
        return wheel.version
    return _version_in(package / "_version.py")


def _version_in(module: Path) -> str | None:
    """The version in the file that versioneer writes into the package."""
    if not module.is_file():
        return None
    found = re.search(r'"version": "([0-9.]+)"', module.read_text())
    return found[1] if found else None
