"""A request in flight: sent in a thread of its own, watched token by token, ended by closing its connection."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable

from fuzzer.errors import ServerFailure
from fuzzer.servers.protocol import Request, RequestRefused, Server
from oracles.observations import Failure, Observation, Position, Span

_PATIENCE_S = 60.0


class Flight:
    """``arrived`` and ``opened`` are called by the server adapter, all else by whoever runs the plan."""

    def __init__(self, server: Server, request: Request, tick: Callable[[], int]) -> None:
        self._server = server
        self._request = request
        self._tick = tick
        self._changed = threading.Condition()
        self._positions: list[Position] = []
        self._first: int | None = None
        self._ended: int | None = None
        self._socket: socket.socket | None = None
        self._outcome: Observation | Failure | None = None
        self.aborted = False
        self._sent = tick()
        self._thread = threading.Thread(target=self._fly, name="flight", daemon=True)
        self._thread.start()

    def opened(self, connection: socket.socket) -> None:
        """The connection that carries this request, which has been sent; cut at once where the flight was aborted."""
        with self._changed:
            self._socket = connection
            if self.aborted:
                _shut(connection)
            self._changed.notify_all()

    def arrived(self, position: Position) -> None:
        """One more token of the answer."""
        with self._changed:
            if self._first is None:
                self._first = self._tick()
            self._positions.append(position)
            self._changed.notify_all()

    def await_tokens(self, count: int) -> None:
        """Wait until the answer has ``count`` tokens or has ended; raises ServerFailure after a minute without."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._positions) >= count or self._over, _PATIENCE_S):
                raise ServerFailure(f"no token {count} within {_PATIENCE_S:g} s")

    def await_sent(self) -> None:
        """Wait until the request is on its way: what a plan asks next is to come after it.

        Raises ServerFailure after a minute.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._socket is not None or self._over, _PATIENCE_S):
                raise ServerFailure(f"a request could not be sent within {_PATIENCE_S:g} s")

    def abort(self) -> None:
        """Close the connection, whether the request is queued, in prefill or in decode, and see the flight end.

        The request is sent first: one that never reached the server leaves nothing there. Raises ServerFailure after a
        minute.
        """
        with self._changed:
            self.await_sent()
            if not self._over:
                self.aborted = True
            if self._socket is not None:
                _shut(self._socket)
        self.join()

    def join(self) -> None:
        """Wait for the end; raises ServerFailure where it does not come."""
        self._thread.join(_PATIENCE_S)
        if self._thread.is_alive():
            raise ServerFailure(f"a request did not end within {_PATIENCE_S:g} s")

    @property
    def outcome(self) -> Observation | Failure:
        """The answer, or as much of it as came before the abort."""
        if self.aborted or self._outcome is None:
            return Observation(list(self._positions))
        return self._outcome

    @property
    def span(self) -> Span:
        """When it was sent, gave its first token and ended."""
        return Span(self._sent, self._first, self._ended if self._ended is not None else self._tick())

    @property
    def _over(self) -> bool:
        return self._ended is not None

    def _fly(self) -> None:
        outcome = self._flown()
        with self._changed:
            self._outcome = outcome
            self._ended = self._tick()
            self._changed.notify_all()

    def _flown(self) -> Observation | Failure:
        try:
            return self._server.stream(self._request, self)
        except RequestRefused as refusal:
            return Failure(refusal.reason, refusal.status)
        except ServerFailure as failure:
            return Failure(str(failure), dead=True)


def counter() -> Callable[[], int]:
    """One count of events; safe to call from several threads."""
    numbers = itertools.count()
    return lambda: next(numbers)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
