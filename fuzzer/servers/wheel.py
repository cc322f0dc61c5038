"""Which llama.cpp build the embedded server is: the library does not know, only the wheel's version does."""

from __future__ import annotations

import re
from importlib.machinery import PathFinder
from importlib.metadata import distributions
from pathlib import Path

WHEEL = "xllamacpp"


def engine_version() -> str:
    """For example ``b11549 (xllamacpp 2026.10.11549)``; the last number of the wheel's version is llama.cpp's build."""
    version = _wheel_version()
    if version is None:
        return f"unknown build ({WHEEL})"
    return f"b{version.rpartition('.')[2]} ({WHEEL} {version})"


def _wheel_version() -> str | None:
    """Looked up beside the module that would be imported: a PYTHONPATH folder may come before the installed one."""
    spec = PathFinder.find_spec(WHEEL)
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
