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
from fuzzer.servers.protocol import RequestRefused, Watcher

_SECONDS = 60.0


def events(url: str, path: str, body: object, watcher: Watcher) -> Iterator[bytes]:
    """The data of each event; raises RequestRefused for an error status, ServerFailure for a connection that breaks."""
    with closing(_connection(url)) as connection:
        try:
            connection.connect()
            watcher.opened(connection.sock)
            connection.request("POST", path, msgspec.json.encode(body), {"content-type": "application/json"})
            response = connection.getresponse()
            if response.status >= 400:
                raise RequestRefused(f"status {response.status}: {_head(response)}", response.status)
            yield from _data(response)
        except (OSError, http.client.HTTPException) as error:
            raise ServerFailure(f"{url}{path} broke off: {error or type(error).__name__}") from None


def _connection(url: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=_SECONDS)


def _head(response: http.client.HTTPResponse) -> str:
    return response.read(300).decode("utf-8", "replace")


def _data(response: http.client.HTTPResponse) -> Iterator[bytes]:
    for line in response:
        if line.startswith(b"data:"):
            yield line[5:].strip()
