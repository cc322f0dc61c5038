"""What the tests ask a running server, and how they watch a process end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx

from fuzzer.servers.launched import LaunchedServer

GONE_SECONDS = 20.0


def get(server: LaunchedServer, path: str) -> Any:
    return httpx.get(server.url + path).raise_for_status().json()


def post(server: LaunchedServer, path: str, body: Any) -> Any:
    return httpx.post(server.url + path, json=body).raise_for_status().json()


def complete(server: LaunchedServer, first: int, **fields: Any) -> Any:
    """One token after a prompt of 24 that shares nothing with one of another ``first``."""
    prompt = [first + step % 7 for step in range(24)]
    return post(server, "/completion", {"prompt": prompt, "n_predict": 1, "temperature": 0, **fields})


def reused(answer: Any) -> int:
    return int(answer["timings"]["cache_n"])


def is_running(pid: int) -> bool:
    """Whether the process runs; one that ended and is only not collected yet does not."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_gone_soon(pid: int) -> bool:
    deadline = time.monotonic() + GONE_SECONDS
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.005)
    return not is_running(pid)
