"""The engines that stalefuzz knows, one line each; the first that recognises a server is taken for it."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzer.errors import UnreachableError, UsageError
from fuzzer.servers.engine import Engine
from fuzzer.servers.generic_engines import GENERIC, generic_engine
from fuzzer.servers.http import Connection
from fuzzer.servers.llama_engine import LLAMA_CPP
from fuzzer.servers.mlx_lm_engine import MLX_LM
from fuzzer.servers.profiles import Profile
from fuzzer.servers.sglang_engine import SGLANG
from fuzzer.servers.vllm_engine import VLLM
from fuzzer.servers.zoo_engine import ZOO

ENGINES: tuple[Engine, ...] = (LLAMA_CPP, VLLM, SGLANG, MLX_LM, ZOO, *GENERIC)
DEFAULT = LLAMA_CPP
LAUNCHABLE = tuple(engine.name for engine in ENGINES if engine.install is not None)


def engine_called(name: str, profiles: Sequence[Profile] = ()) -> Engine:
    """The engine of that name, ``profiles`` of the user's among them; raises UsageError."""
    engines = _with(profiles)
    for engine in engines:
        if engine.name == name:
            return engine
    known = ", ".join(engine.name for engine in engines)
    raise UsageError(f"there is no adapter for an engine called {name!r}; known: {known}")


def engine_at(url: str, profiles: Sequence[Profile] = ()) -> Engine:
    """Which engine answers at ``url``; raises UnreachableError where nothing does, or nothing that we know."""
    engines = _with(profiles)
    connection = Connection(url)
    try:
        connection.reach()
        for engine in engines:
            if engine.speaks(connection):
                return engine
    finally:
        connection.close()
    known = ", ".join(engine.server or engine.name for engine in engines)
    raise UnreachableError(f"{url} answers, but not as any of {known} does; name its engine with --engine")


def _with(profiles: Sequence[Profile]) -> tuple[Engine, ...]:
    """All engines, the user's own profiles first; raises UsageError for one that takes the name of another."""
    engines = (*map(generic_engine, profiles), *ENGINES)
    names = [engine.name for engine in engines]
    for profile in profiles:
        if names.count(profile.name) > 1:
            raise UsageError(f"there is an engine called {profile.name!r} already: give the profile another name")
    return engines
