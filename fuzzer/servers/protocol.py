"""What a server adapter offers to the rest of the program; one adapter is one module."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from oracles.observations import Observation
from scenarios.capabilities import Capabilities
from scenarios.environment import AdapterScale


class Request(msgspec.Struct, frozen=True):
    """One greedy completion as it goes to a server."""

    prompt: tuple[int, ...]
    tokens: int
    scales: tuple[AdapterScale, ...] = ()
    reuse: bool = True
    """False: the server is told not to read its cache for this request."""


class RequestRefused(Exception):  # noqa: N818 - the server's answer, not our fault
    """The server answered with an error status, or with something that is no answer; it is still alive."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class Server(Protocol):
    """A live server. Used by one thread at a time.

    ``complete`` raises RequestRefused for an answer that cannot be judged and fuzzer.errors.ServerFailure when
    nothing answers any more.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What this server lets us ask and see."""
        ...

    @property
    def engine(self) -> str:
        """Name of the engine, as in ``--engine``."""
        ...

    @property
    def version(self) -> str:
        """Build or version, as exactly as it can be told."""
        ...

    def complete(self, request: Request) -> Observation:
        """Send one request and wait for the whole answer."""
        ...

    @property
    def path(self) -> str:
        """The route that completions are posted to."""
        ...

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as."""
        ...

    def text_of(self, token: int) -> str | None:
        """The text of one token; None where the server does not tell."""
        ...

    def close(self) -> None:
        """Close the connections; the server lives on."""
        ...
