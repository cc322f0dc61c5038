"""Ports and health on this machine's loopback address, the only one that launched servers listen on."""

from __future__ import annotations

import http.client
import socket
from urllib.parse import urlsplit

from fuzzer.errors import ServerStartError
from fuzzer.servers.llama_flags import LOOPBACK

HEALTH_SECONDS = 5.0


class PortInUseError(ServerStartError):
    """Another process listens on the port that a server was to have."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Connections of an earlier server that still linger do not count: llama-server binds over them too.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def is_healthy(url: str) -> bool:
    """Whether ``/health`` answers 200; llama-server answers 503 while it loads the model."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or LOOPBACK, address.port, timeout=HEALTH_SECONDS)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
