"""Versions of adapters and weights: what a target loads under one name in turn, references have side by side.

Version v of adapter n is the folder n + v places on, so that reloads need no more folders than there are adapters.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from fuzzer.errors import UsageError
from scenarios.environment import adapter_letter
from scenarios.operations import Operation, Reload, Unload

T = TypeVar("T")
VERSIONS = 2
"""Of each adapter, the first included: as many as scenarios draw."""


def version_name(adapter: int, version: int) -> str:
    """The name of one version of an adapter on a reference."""
    return f"{adapter_letter(adapter)}-v{version}"


def version_place(adapter: int, version: int) -> int:
    """Where one version of an adapter stands in ``all_versions``, for a server that numbers its adapters."""
    return adapter * VERSIONS + version % VERSIONS


def version_path(paths: Sequence[str], adapter: int, version: int) -> str:
    """The folder that holds this version."""
    return paths[(adapter + version) % len(paths)]


def version_of(weights: Sequence[T], version: int) -> T:
    """The model's weights of this version."""
    return weights[version % len(weights)]


def chosen(names: Sequence[str], only: Sequence[str] | None) -> list[str]:
    """Of a server's adapters those that the user named, in that order; raises UsageError for one that it has not."""
    if only is None:
        return list(names)
    for name in only:
        if name not in names:
            raise UsageError(f"the server has no adapter called {name!r}; it has {', '.join(names) or 'none'}")
    return list(only)


def folder_of(name: str) -> str:
    """What the folder that an adapter was loaded from is called where settings of a server are compared."""
    return f"the folder of {name}"


def folder_after(operation: Operation, names: Sequence[str], paths: Sequence[str]) -> dict[str, str]:
    """From which folder an adapter comes once ``operation`` was done; empty for what loads none."""
    if not isinstance(operation, (Reload, Unload)):
        return {}
    return {folder_of(names[operation.adapter]): version_path(paths, operation.adapter, operation.version)}


def loads(paths: Sequence[str], weights: Sequence[str]) -> list[str]:
    """Kinds of operations for which there are folders: ``paths`` of adapters, and of the model's ``weights``."""
    kinds = ["reload"] if len(paths) > 1 else []
    kinds += ["unload"] if paths else []
    kinds += ["reload_weights"] if len(weights) > 1 else []
    return kinds


def first_versions(folders: Sequence[Path]) -> list[tuple[str, str]]:
    """Name and folder of each adapter of a target."""
    return [(adapter_letter(adapter), str(path)) for adapter, path in enumerate(folders)]


def all_versions(folders: Sequence[Path]) -> list[tuple[str, str]]:
    """Name and folder of each version of each adapter, for a reference."""
    paths = [str(path) for path in folders]
    return [
        (version_name(adapter, version), version_path(paths, adapter, version))
        for adapter in range(len(paths))
        for version in range(VERSIONS)
    ]
