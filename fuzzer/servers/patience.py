"""Patience: how long a server may take to be reached, to begin its answer and to end it.

A socket's timeout bounds each wait for bytes; a server that sends one now and then keeps a client for ever. So the
whole answer has a limit of its own.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds for each phase of a request."""

    reach_s: float = 5.0
    """Until the connection stands, TLS included."""
    silence_s: float = 60.0
    """For each part of the request to be taken, until the answer's first byte, and from any byte to the next."""
    whole_s: float = 300.0
    """From the request sent to the answer's last byte."""


USUAL = Patience()


def patient_connection(url: str, patience: Patience, trust: ssl.SSLContext | None) -> http.client.HTTPConnection:
    """A connection to ``url``, not yet opened; a phase that takes too long raises TimeoutError, which names it."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        return _PatientOverTLS(host, parts.port, patience, context=trust)
    return _Patient(host, parts.port, patience)


class _Patient(http.client.HTTPConnection):
    def __init__(self, host: str, port: int | None, patience: Patience, **further: Any) -> None:
        super().__init__(host, port, timeout=patience.reach_s, **further)
        self._patience = patience
        self.response_class = partial(_Answer, patience)  # type: ignore[assignment]

    def connect(self) -> None:
        try:
            super().connect()
        except TimeoutError:
            raise TimeoutError(f"could not be reached within {self._patience.reach_s:g} s") from None
        self.sock.settimeout(self._patience.silence_s)

    def request(self, *words: Any, **further: Any) -> None:
        if self.sock is None:
            self.connect()
        else:
            # An answer before this one may have left the socket with the rest of its own time.
            self.sock.settimeout(self._patience.silence_s)
        try:
            super().request(*words, **further)
        except TimeoutError:
            raise TimeoutError(f"did not take the request for {self._patience.silence_s:g} s") from None


class _PatientOverTLS(_Patient, http.client.HTTPSConnection):
    pass


class _Answer(http.client.HTTPResponse):
    def __init__(self, patience: Patience, sock: socket.socket, *words: Any, **further: Any) -> None:
        super().__init__(sock, *words, **further)
        self.fp = io.BufferedReader(_Arriving(self.fp.detach(), sock, patience))


class _Arriving(io.RawIOBase):
    """The bytes of one answer, as long as there is time for it."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, patience: Patience) -> None:
        self._raw = raw
        self._socket = sock
        self._patience = patience
        self._deadline = time.monotonic() + patience.whole_s
        self._begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        silence = self._patience.silence_s
        try:
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(min(left, silence))
            count = self._raw.readinto(buffer)
        except TimeoutError:
            raise TimeoutError(self._missing(left)) from None
        self._begun = True
        return int(count) if count is not None else None

    def close(self) -> None:
        self._raw.close()
        super().close()

    def _missing(self, left: float) -> str:
        if left < self._patience.silence_s:
            return f"did not end its answer within {self._patience.whole_s:g} s"
        what = "stopped in the middle of its answer for" if self._begun else "gave no answer within"
        return f"{what} {self._patience.silence_s:g} s"
