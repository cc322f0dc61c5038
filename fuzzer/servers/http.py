"""One kept connection to one server: JSON out, bytes in, errors sorted into refusals and failures."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx
import msgspec

from fuzzer.errors import ServerFailure, UnreachableError
from fuzzer.servers.protocol import RequestRefused

T = TypeVar("T")
_JSON = {"content-type": "application/json"}
_SECONDS = httpx.Timeout(60.0, connect=5.0)


class Connection:
    """HTTP to ``url`` over a kept connection; a new one for each request costs ten times the request."""

    def __init__(self, url: str, *, timeout: httpx.Timeout = _SECONDS) -> None:
        self.url = url.rstrip("/")
        # trust_env would send loopback traffic through a proxy that the user has set for the outside.
        self._client = httpx.Client(base_url=self.url, timeout=timeout, trust_env=False)

    def post(self, path: str, body: object) -> bytes:
        """Body of the answer to a POST; raises RequestRefused for a status of 400 and above."""
        return self._checked(self._send("POST", path, msgspec.json.encode(body)))

    def get(self, path: str) -> bytes:
        """Body of the answer to a GET; raises RequestRefused for a status of 400 and above."""
        return self._checked(self._send("GET", path, None))

    def get_json(self, path: str) -> Any:
        """Decoded JSON of a GET; raises RequestRefused where the answer is not JSON."""
        return decode(self.get(path), Any)

    def reach(self) -> None:
        """Raise UnreachableError unless something answers HTTP at the URL."""
        try:
            self._client.get("/health")
        except httpx.HTTPError as error:
            raise UnreachableError(f"nothing answers at {self.url} ({error}); is the server running?") from None

    def close(self) -> None:
        """Close the kept connection."""
        self._client.close()

    def _send(self, method: str, path: str, content: bytes | None) -> httpx.Response:
        try:
            return self._client.request(method, path, content=content, headers=_JSON)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            return self._send_afresh(method, path, content)
        except httpx.TimeoutException:
            raise ServerFailure(f"{self.url}{path} did not answer in time") from None
        except httpx.HTTPError as error:
            raise ServerFailure(f"{self.url}{path} failed: {error}") from None

    def _send_afresh(self, method: str, path: str, content: bytes | None) -> httpx.Response:
        # A server may close a kept connection just as we use it: that is no crash, a second failure is.
        try:
            return self._client.request(method, path, content=content, headers=_JSON)
        except httpx.HTTPError as error:
            raise ServerFailure(f"{self.url}{path} failed twice: {error}") from None

    @staticmethod
    def _checked(response: httpx.Response) -> bytes:
        if response.status_code >= 400:
            raise RequestRefused(f"status {response.status_code}: {response.text[:300]}", response.status_code)
        return response.content


def decode(content: bytes, kind: type[T]) -> T:
    """Decode JSON as ``kind``; raises RequestRefused naming what is malformed."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise RequestRefused(f"malformed answer: {error}") from None
