"""A server that hangs is given up, in whichever phase of a request it does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import pytest

from fuzzer.errors import ServerFailure, UnreachableError
from fuzzer.servers import sse
from fuzzer.servers.access import Access, permit
from fuzzer.servers.http import Connection
from fuzzer.servers.patience import Patience
from oracles.observations import Position

SHORT_S, LONG_S = 0.2, 60.0
TIME_TO_BEGIN_S = 2.0
"""More than a server of this file needs for its first bytes."""
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
MORE_THAN_BUFFERS = "x" * (64 << 20)

Serve = Callable[[socket.socket], None]


class Following:
    """Whoever follows a stream and expects nothing."""

    def opened(self, connection: socket.socket) -> None:
        """Sent."""

    def arrived(self, position: Position) -> None:
        """A token."""


@contextmanager
def hanging(serve: Serve | None = None) -> Iterator[str]:
    """Listens; whoever connects gets ``serve``, or is left where the kernel put them."""
    accepted: list[socket.socket] = []
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        if serve is not None:
            thread = threading.Thread(target=_serve_all, args=(listening, serve, accepted))
            thread.start()
            stack.callback(thread.join)
            stack.callback(_shut_all, accepted)
            stack.callback(_shut_all, [listening])
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def _shut_all(sockets: list[socket.socket]) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def _serve_all(listening: socket.socket, serve: Serve, accepted: list[socket.socket]) -> None:
    with ExitStack() as stack, suppress(OSError):
        while True:
            connection = stack.enter_context(listening.accept()[0])
            accepted.append(connection)
            with suppress(OSError):
                serve(connection)


def begins_and_stops(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"data: {}\n")
    while connection.recv(1 << 16):
        pass


def sends_for_ever(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(HEAD)
    while True:
        connection.sendall(b"data: {}\n")


def post(url: str, body: object = ()) -> None:
    with closing(Connection(url)) as connection:
        connection.post("/x", body)


def stream(url: str, body: object = ()) -> None:
    for _ in sse.events(url, "/x", body, Following()):
        pass


either = pytest.mark.parametrize("ask", [post, stream])


@either
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_nobody_can_reach(ask: Callable[[str], None], scheme: str) -> None:
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = full.getsockname()
        if scheme == "http":
            # The queue of those who wait to be accepted has one place. TLS begins once there.
            stack.enter_context(socket.create_connection(address))
        url = f"{scheme}://127.0.0.1:{address[1]}"
        permit(url, Access(patience=Patience(SHORT_S, LONG_S, LONG_S)))
        with pytest.raises(ServerFailure, match=rf"could not be reached within {SHORT_S} s"):
            ask(url)


def test_it_is_called_unreachable_at_first_sight() -> None:
    with hanging() as url:
        permit(url, Access(patience=Patience(LONG_S, SHORT_S, LONG_S)))
        with (
            closing(Connection(url)) as connection,
            pytest.raises(UnreachableError, match=rf"nothing answers at {url} \(gave no answer within {SHORT_S} s\)"),
        ):
            connection.reach()


@either
def test_a_request_that_is_not_taken(ask: Callable[[str, object], None]) -> None:
    with hanging() as url:
        permit(url, Access(patience=Patience(LONG_S, SHORT_S, LONG_S)))
        with pytest.raises(ServerFailure, match=f"did not take the request for {SHORT_S} s"):
            ask(url, MORE_THAN_BUFFERS)


@either
def test_an_answer_that_does_not_begin(ask: Callable[[str], None]) -> None:
    with hanging() as url:
        permit(url, Access(patience=Patience(LONG_S, SHORT_S, LONG_S)))
        with pytest.raises(ServerFailure, match=f"gave no answer within {SHORT_S} s"):
            ask(url)


@either
def test_an_answer_that_stops(ask: Callable[[str], None]) -> None:
    with hanging(begins_and_stops) as url:
        permit(url, Access(patience=Patience(LONG_S, TIME_TO_BEGIN_S, LONG_S)))
        with pytest.raises(ServerFailure, match=f"stopped in the middle of its answer for {TIME_TO_BEGIN_S:g} s"):
            ask(url)


@either
def test_an_answer_that_does_not_end(ask: Callable[[str], None]) -> None:
    with hanging(sends_for_ever) as url:
        permit(url, Access(patience=Patience(LONG_S, LONG_S, SHORT_S)))
        with pytest.raises(ServerFailure, match=f"did not end its answer within {SHORT_S} s"):
            ask(url)
