"""A server that answers whatever a test tells it to: the handshake of an engine, then anything at all."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Answers(ThreadingHTTPServer):
    """``answers`` by path: JSON, bytes or a function of what was sent.

    ``statuses`` are given to the next requests before any answer is.
    """

    daemon_threads = True

    def __init__(self, answers: Mapping[str, Any], tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.answers = dict(answers)
        self.statuses: list[int] = []
        self.asked: list[tuple[str, dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://127.0.0.1:{self.server_address[1]}"


class _Requests(BaseHTTPRequestHandler):
    server: Answers
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        self._answer(json.loads(content) if content else None)

    def _answer(self, body: Any) -> None:
        self.server.asked.append((self.path, dict(self.headers), body))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        answer = self.server.answers.get(self.path.partition("?")[0], b"")
        if callable(answer):
            answer = answer(body)
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *words: Any) -> None:
        """Nothing."""


@contextmanager
def answering(answers: Mapping[str, Any], tls: ssl.SSLContext | None = None) -> Iterator[Answers]:
    """Such a server, listening; over https where ``tls`` is given."""
    with Answers(answers, tls) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
