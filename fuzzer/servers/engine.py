"""What the rig has to know of an engine; each engine's own module states it, one line in ``registry`` names it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fuzzer.options import ServerOptions
from fuzzer.servers.http import Connection
from fuzzer.servers.launched import LaunchedServer
from fuzzer.servers.protocol import Server
from reports.record import Settings


class Installation(Protocol):
    """An engine on this machine with a model and flags that were checked; starts as many servers as are asked for."""

    @property
    def switches(self) -> dict[str, tuple[str, ...]]:
        """Settings that may make a bug go away: words for a reader, flags for the server."""
        ...

    @property
    def takes_settings(self) -> bool:
        """Whether the settings that scenarios name, in llama-server's spelling, mean anything here."""
        ...

    @property
    def tiny_files(self) -> tuple[Path, ...]:
        """Files of a tiny model of ours, which reproducers may bring along; none for a model of the user's."""
        ...

    @property
    def starts_quickly(self) -> bool:
        """Whether every confirmation of a finding can have a fresh server; otherwise it gets fresh roots."""
        ...

    @property
    def program(self) -> str:
        """What is started, in a few words."""
        ...

    @property
    def build(self) -> str | None:
        """Names the one program that computes; None where what else is installed decides how it rounds, as torch."""
        ...

    def target(self, further: tuple[str, ...] = (), setting: tuple[str, ...] = ()) -> LaunchedServer:
        """A server that caches, not yet started.

        ``further`` flags stand before all others, those of ``setting`` before our defaults only.
        """
        ...

    def reference(self) -> LaunchedServer:
        """The same model and numerics with every cache off, not yet started."""
        ...

    @property
    def reference_of(self) -> Callable[[int], LaunchedServer] | None:
        """The reference with another version of the model's weights, not yet started; None where there is one only."""
        ...

    def further(self, setting: tuple[str, ...]) -> tuple[str, ...]:
        """Kinds of operations that a target with the flags of ``setting`` can do, beside those that any can."""
        ...

    def connect(self, url: str) -> Server:
        """The adapter for a target that we started."""
        ...

    def connect_reference(self, url: str) -> Server:
        """The adapter for a reference that we started."""
        ...

    def settings(self, setting: tuple[str, ...] = ()) -> Settings:
        """What a finding records; whoever asks fills in version and numerics."""
        ...

    def close(self) -> None:
        """Remove what was written for the servers."""
        ...


Install = Callable[[ServerOptions, bool], Installation]
"""Checks everything that can be checked without a server; the second argument asks for exact numerics."""
Attach = Callable[[str, ServerOptions], Server]
"""The adapter for a server that runs at a URL; raises UnreachableError where none of this engine does."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine. ``speaks`` says whether it is this engine that answers."""

    name: str
    attach: Attach
    speaks: Callable[[Connection], bool]
    install: Install | None = None
    server: str = ""
    """What its server is called, where that is not the engine's own name."""
