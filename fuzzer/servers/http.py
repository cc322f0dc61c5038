"""One kept connection to one server: JSON out, bytes in, errors sorted into refusals and failures.

http.client and not httpx: a request costs a fifth of the time in this process, and while two threads talk to two
servers that time is what bounds the rate (``stalefuzz bench throughput``).
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from fuzzer.errors import ServerFailure, UnreachableError
from fuzzer.servers.access import RETRY_AFTER, gate
from fuzzer.servers.protocol import RequestRefused

T = TypeVar("T")
_Exchanged = tuple[int, str, bytes]
"""Status, how long the server asks to wait, body."""


class Connection:
    """HTTP to ``url`` over a kept connection; a new one for each request costs ten times the request."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._prefix = urlsplit(self.url).path
        self._gate = gate(self.url)
        self._connection = self._gate.connection(self.url)

    def post(self, path: str, body: object) -> bytes:
        """Body of the answer to a POST; raises RequestRefused for a status of 400 and above."""
        return self._send("POST", path, msgspec.json.encode(body))

    def get(self, path: str) -> bytes:
        """Body of the answer to a GET; raises RequestRefused for a status of 400 and above."""
        return self._send("GET", path, None)

    def get_json(self, path: str) -> Any:
        """Decoded JSON of a GET; raises RequestRefused where the answer is not JSON."""
        return decode(self.get(path), Any)

    def has(self, path: str) -> bool:
        """Whether there is a route at ``path``, be it for other methods than GET."""
        try:
            self.get(path)
        except RequestRefused as refusal:
            return refusal.status == http.client.METHOD_NOT_ALLOWED
        return True

    def reach(self) -> None:
        """Raise UnreachableError unless something answers HTTP at the URL."""
        try:
            self._exchange("GET", "/health", None)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise UnreachableError(f"nothing answers at {self.url} ({_words(error)}); is the server running?") from None

    def close(self) -> None:
        """Close the kept connection."""
        self._connection.close()

    def _send(self, method: str, path: str, content: bytes | None) -> bytes:
        with self._gate.admitted():
            status, answer = self._sent(method, path, content)
        if status >= 400:
            raise RequestRefused(f"status {status}: {answer[:300].decode('utf-8', 'replace')}", status)
        return answer

    def _sent(self, method: str, path: str, content: bytes | None) -> tuple[int, bytes]:
        """Status and body; asked once more where the server says that it is too busy, and where we are to try again."""
        tried = 1
        while True:
            try:
                status, asked, answer = self._exchange(method, path, content)
            except TimeoutError as error:
                self.close()
                raise ServerFailure(f"{self.url}{path} {error}") from None
            except (OSError, http.client.HTTPException):
                status, asked, answer = self._send_afresh(method, path, content)
            if not self._gate.pause(tried, status, asked):
                return status, answer
            tried += 1

    def _send_afresh(self, method: str, path: str, content: bytes | None) -> _Exchanged:
        # A server may close a kept connection just as we use it: that is no crash, a second failure is.
        tried = 1
        while True:
            self.close()
            try:
                return self._exchange(method, path, content)
            except (OSError, http.client.HTTPException) as error:
                if not isinstance(error, ConnectionError) or not self._gate.pause_unreachable(tried):
                    self.close()
                    raise ServerFailure(f"{self.url}{path} failed twice: {_words(error)}") from None
            tried += 1

    def _exchange(self, method: str, path: str, content: bytes | None) -> _Exchanged:
        self._connection.request(method, self._prefix + path, content, self._gate.headers())
        with self._connection.getresponse() as response:
            # One header only: to copy them all takes a tenth of a millisecond.
            return response.status, response.headers.get(RETRY_AFTER, ""), response.read()


@contextmanager
def kept_if_usable(connection: Connection) -> Iterator[None]:
    """Close the connection where what is done with it here fails."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def decode(content: bytes, kind: type[T]) -> T:
    """Decode JSON as ``kind``; raises RequestRefused naming what is malformed."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise RequestRefused(f"malformed answer: {error}") from None
