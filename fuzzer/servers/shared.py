"""A server that others may use too: everything that is asked of it is told to whoever watches its company."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuzzer.company import Company
from fuzzer.servers.protocol import Action, Request, Server, Use, Watcher
from oracles.observations import Observation
from scenarios.capabilities import Capabilities
from scenarios.operations import Operation


class SharedServer:
    """``server``, watched."""

    def __init__(self, server: Server, company: Company) -> None:
        self._server = server
        self._company = company

    @property
    def capabilities(self) -> Capabilities:
        """Those of the server."""
        return self._server.capabilities

    @property
    def engine(self) -> str:
        """That of the server."""
        return self._server.engine

    @property
    def version(self) -> str:
        """That of the server."""
        return self._server.version

    @property
    def path(self) -> str:
        """That of the server."""
        return self._server.path

    @property
    def variables(self) -> Mapping[str, str]:
        """Those of the server."""
        return self._server.variables

    @property
    def use(self) -> Use:
        """That of the server."""
        return self._server.use

    def complete(self, request: Request) -> Observation:
        """Send one request and wait for the whole answer."""
        answer: Observation | None = None
        try:
            answer = self._server.complete(request)
        finally:
            self._company.asked(request, answer)
        return answer

    def stream(self, request: Request, watcher: Watcher) -> Observation:
        """Send one request and tell ``watcher`` each token as it comes."""
        answer: Observation | None = None
        try:
            answer = self._server.stream(request, watcher)
        finally:
            self._company.asked(request, answer)
        return answer

    def perform(self, operation: Operation) -> int | None:
        """Do an operation that is no request, after a look at what it overwrites."""
        self._company.about_to(operation)
        done = False
        try:
            told = self._server.perform(operation)
            done = True
        finally:
            self._company.did(operation, done=done)
        return told

    def action(self, operation: Operation) -> Action:
        """As the server spells it."""
        return self._server.action(operation)

    def body(self, request: Request) -> dict[str, Any]:
        """As the server spells it."""
        return self._server.body(request)

    def streamed(self, request: Request) -> dict[str, Any]:
        """As the server spells it."""
        return self._server.streamed(request)

    def text_of(self, token: int) -> str | None:
        """As the server tells it."""
        return self._server.text_of(token)

    def close(self) -> None:
        """Close the connections; the server lives on."""
        self._server.close()
