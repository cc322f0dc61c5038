"""Server-sent events over a connection of their own, which can be cut at any moment.

httpx hands out a connection only with the head of the answer, and servers send the head with the first token: an abort
while the prompt is still computed, or still queued, needs the socket before that.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import msgspec

from fuzzer.errors import ServerFailure
from fuzzer.servers.access import RETRY_AFTER, Gate, gate
from fuzzer.servers.protocol import RequestRefused, Watcher


def events(url: str, path: str, body: object, watcher: Watcher) -> Iterator[bytes]:
    """The data of each event; raises RequestRefused for an error status, ServerFailure for a connection that breaks."""
    door = gate(url)
    content = msgspec.json.encode(body)
    tried = 1
    with door.admitted():
        while True:
            with closing(door.connection(url)) as connection:
                try:
                    with _asked(connection, door, urlsplit(url).path.rstrip("/") + path, content, watcher) as response:
                        if not door.pause(tried, response.status, response.headers.get(RETRY_AFTER, "")):
                            yield from _data(_accepted(response))
                            return
                except TimeoutError as error:
                    raise ServerFailure(f"{url}{path} {error}") from None
                except (OSError, http.client.HTTPException) as error:
                    raise ServerFailure(f"{url}{path} broke off: {error or type(error).__name__}") from None
            tried += 1


def _asked(
    connection: http.client.HTTPConnection, door: Gate, path: str, content: bytes, watcher: Watcher
) -> http.client.HTTPResponse:
    connection.request("POST", path, content, door.headers())
    watcher.opened(connection.sock)
    return connection.getresponse()


def _accepted(response: http.client.HTTPResponse) -> http.client.HTTPResponse:
    if response.status >= 400:
        raise RequestRefused(f"status {response.status}: {_head(response)}", response.status)
    return response


def _head(response: http.client.HTTPResponse) -> str:
    return response.read(300).decode("utf-8", "replace")


def _data(response: http.client.HTTPResponse) -> Iterator[bytes]:
    for line in response:
        if line.startswith(b"data:"):
            yield line[5:].strip()
