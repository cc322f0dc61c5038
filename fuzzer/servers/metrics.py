"""Counters that a server shows in the format of Prometheus."""

from __future__ import annotations

from collections.abc import Collection

from fuzzer.servers.http import Connection
from fuzzer.servers.protocol import RequestRefused


def counters(connection: Connection, names: Collection[str]) -> dict[str, float]:
    """Those of ``names`` that the server shows, each added up over its labels; empty where it shows no metrics."""
    found: dict[str, float] = {}
    try:
        page = connection.get("/metrics").decode("utf-8", "replace")
    except RequestRefused:
        return found
    for line in page.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name in names:
            found[name] = found.get(name, 0.0) + _number(line.rpartition(" ")[2])
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
