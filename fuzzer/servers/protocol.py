"""What a server adapter offers to the rest of the program; one adapter is one module."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from oracles.observations import Observation, Position
from scenarios.capabilities import Capabilities
from scenarios.environment import AdapterScale
from scenarios.operations import Operation, Sampling


class Request(msgspec.Struct, frozen=True):
    """One completion as it goes to a server."""

    prompt: tuple[int, ...]
    tokens: int
    scales: tuple[AdapterScale, ...] | None = ()
    """None: the field is left out. A reference's request names every adapter, with the version it has to have."""
    reuse: bool = True
    """False: the server is told not to read its cache for this request."""
    slot: int | None = None
    sampling: Sampling = Sampling.PLAIN
    salt: str = ""


NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
"""Of a server whose requests name no file."""


class Post(msgspec.Struct, frozen=True):
    """One POST of an operation that is no request. Those of an operation are sent in order, to the first refusal."""

    path: str
    body: Any
    remedies: str = ""
    """It makes up for a refusal of the one before that has these words in it, and is sent after no other."""
    always: bool = False
    """It is sent after a refusal too, which stands."""


class Until(msgspec.Struct, frozen=True):
    """Waiting between two POSTs: GET ``path`` until the answer has ``field`` true."""

    path: str
    field: str


class Put(msgspec.Struct, frozen=True):
    """Putting ``file`` in the ``place`` of a file that a server of ours was started with."""

    place: str
    file: str


Call = Post | Until | Put
Action = Sequence[Call]
"""What an operation that is no request is on the wire; empty where the server cannot do it."""


class RequestRefused(Exception):  # noqa: N818 - the server's answer, not our fault
    """The server answered with an error status, or with something that is no answer; it is still alive."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class Occupant(msgspec.Struct, frozen=True):
    """What a slot was last used for: the number of that task and the tokens that it left there."""

    task: int | None = None
    tokens: int | None = None


class Use:
    """What a server tells of its own use, by which its other users show. This one tells nothing."""

    told_by = ""
    """Where others' requests show; empty where they do not."""
    unit = "requests"

    def environment(self) -> dict[str, str]:
        """What holds for the requests of all users alike, such as global scales, by name."""
        return {}

    def after(self, operation: Operation) -> dict[str, str]:
        """What the environment says once ``operation`` was done; only what that changes."""
        return {}

    def work(self) -> int | None:
        """What the server has done since it was started, in ``unit``; None where it does not tell."""
        return None

    def effort(self, request: Request, answer: Observation | None) -> int:
        """The most that a request of ours adds to the work; ``answer`` is None where there is none, or only part."""
        return 1

    def occupants(self) -> tuple[Occupant, ...]:
        """What each slot was last used for; empty where that is not told."""
        return ()


class Watcher(Protocol):
    """Whoever follows a streamed answer."""

    def opened(self, connection: socket.socket) -> None:
        """Told the connection as soon as the request has been sent, so that it can be cut before the answer begins."""
        ...

    def arrived(self, position: Position) -> None:
        """Told each token as it comes."""
        ...


class Server(Protocol):
    """A live server. ``complete`` and ``perform`` are used by one thread at a time, ``stream`` by several.

    All raise RequestRefused for an answer that cannot be judged and fuzzer.errors.ServerFailure when nothing answers
    any more.
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

    def stream(self, request: Request, watcher: Watcher) -> Observation:
        """Send one request on a connection of its own and tell ``watcher`` each token as it comes."""
        ...

    def perform(self, operation: Operation) -> int | None:
        """Do an operation that is no request; a count of what it did, where the server tells one."""
        ...

    def action(self, operation: Operation) -> Action:
        """What ``perform`` sends for an operation; empty for one that this server cannot do."""
        ...

    @property
    def path(self) -> str:
        """The route that completions are posted to."""
        ...

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as."""
        ...

    def streamed(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as where its answer is to come token by token."""
        ...

    @property
    def variables(self) -> Mapping[str, str]:
        """What a reproducer calls each file of the server's machine that requests name."""
        ...

    def text_of(self, token: int) -> str | None:
        """The text of one token; None where the server does not tell."""
        ...

    @property
    def use(self) -> Use:
        """What this server tells of how it is used and set, by us and by others."""
        ...

    def close(self) -> None:
        """Close the connections; the server lives on."""
        ...
