"""How a server of the user's is spoken to: credentials, trust, and how hard it may be pressed.

Set once for an address, looked up by everything that opens a connection to it. A key comes from the environment, goes
to the addresses that the user named and to no other, and is in nothing that is recorded or printed.
"""

from __future__ import annotations

import http.client
import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from fuzzer.errors import UsageError
from fuzzer.servers.patience import USUAL, Patience, patient_connection

RETRY_AFTER = "Retry-After"
"""The header in which a busy server says how long to wait."""
_KEYS = ("STALEFUZZ_API_KEY", "OPENAI_API_KEY")
_BUSY = (429, 503)
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 10.0


@dataclass(frozen=True, slots=True)
class Access:
    """``rate`` in requests a second; ``inflight`` requests at once; ``tries`` of one that finds the server busy."""

    key: str = field(default="", repr=False)
    ca_file: Path | None = None
    rate: float | None = None
    inflight: int | None = None
    tries: int = 1
    patience: Patience = USUAL


class Gate:
    """Every request to one address goes through here."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._context = _trust(access.ca_file) if access.ca_file is not None else None
        self._slots = threading.BoundedSemaphore(access.inflight) if access.inflight else None
        self._lock = threading.Lock()
        self._next = 0.0

    def headers(self) -> dict[str, str]:
        """What every request says beside its body."""
        key = {"authorization": f"Bearer {self._access.key}"} if self._access.key else {}
        return {"content-type": "application/json", **key}

    def connection(self, url: str) -> http.client.HTTPConnection:
        """A connection to ``url``, not yet opened."""
        return patient_connection(url, self._access.patience, self._context)

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Wait for the rate, and for one of the requests that may run at once."""
        if self._access.rate is not None:
            self._wait_for_turn(1 / self._access.rate)
        if self._slots is None:
            yield
            return
        with self._slots:
            yield

    def pause(self, tried: int, status: int, asked: str) -> bool:
        """Whether to ask once more after this status; waits before it says so, as long as Retry-After asked to."""
        if status not in _BUSY or tried >= self._access.tries:
            return False
        seconds = float(asked) if asked.isdecimal() else _FIRST_PAUSE_S * 2 ** (tried - 1)
        time.sleep(min(seconds, _LONGEST_PAUSE_S))
        return True

    def pause_unreachable(self, tried: int) -> bool:
        """Whether to connect once more after a connection that failed; waits before it says so."""
        if tried >= self._access.tries:
            return False
        time.sleep(min(_FIRST_PAUSE_S * 2 ** (tried - 1), _LONGEST_PAUSE_S))
        return True

    def _wait_for_turn(self, interval: float) -> None:
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + interval
        time.sleep(turn - now)


_GATES: dict[str, Gate] = {}
_OPEN = Gate(Access())


def permit(url: str, access: Access) -> None:
    """Speak to the server at ``url`` in this way from now on; raises UsageError for a CA file that is none."""
    _GATES[_origin(url)] = Gate(access)


def gate(url: str) -> Gate:
    """The gate to the server at ``url``; an open one where nothing was permitted."""
    return _GATES.get(_origin(url), _OPEN)


def key_in_environment() -> str:
    """The API key that the user set; empty where none is set. Raises UsageError for one that no header can hold."""
    name, key = next(((name, os.environ[name]) for name in _KEYS if os.environ.get(name)), ("", ""))
    if not key.isascii() or not key.isprintable():
        raise UsageError(f"{name} holds characters that an HTTP header cannot")
    return key


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def _trust(ca_file: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"--ca-file {ca_file} holds no certificates: {error}") from None
