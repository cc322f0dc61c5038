"""Environment: everything besides the prompt that must decide the answer."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class AdapterScale(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Adapter number ``adapter`` (as the server was given them, from 0) at ``scale``.

    In an environment, ``version`` counts the weights that the adapter has had under its name; requests cannot name it.
    """

    adapter: int
    scale: float
    version: int = 0


class Environment(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a request is entitled to. Zero scales are dropped, so equal environments compare equal."""

    scales: tuple[AdapterScale, ...] = ()
    salt: str = ""
    weights: int = 0
    """Version of the model's own weights."""


def environment(scales: Iterable[AdapterScale], *, salt: str = "", weights: int = 0) -> Environment:
    """The environment in which exactly ``scales`` are set; order and zero scales do not matter."""
    return Environment(tuple(sorted(scale for scale in scales if scale.scale != 0)), salt, weights)


def adapter_letter(adapter: int) -> str:
    """The name of adapter 0, 1, ... in stories: a, b, ..."""
    return chr(ord("a") + adapter) if adapter < 26 else f"adapter{adapter}"
