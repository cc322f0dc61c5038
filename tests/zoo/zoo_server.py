"""Zoo servers on real sockets, each in a thread of the test's own process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from fuzzer.zoo.serve import build, listen, server
from fuzzer.zoo.settings import Settings

DEADLINE = 20.0

_stopping: list[threading.Thread] = []


@contextmanager
def serving(settings: Settings, *, join: bool = True) -> Iterator[httpx.Client]:
    """A client of a new server, which ends afterwards; without ``join``, ``join_stopped`` must wait for that."""
    running = server(build(settings))
    listening = listen()
    listening.listen()  # before the thread starts, so that the first connection can wait for it
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    _stopping.append(thread)
    try:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with httpx.Client(base_url=url, timeout=DEADLINE) as client:
            yield client
    finally:
        running.should_exit = running.force_exit = True
        if join:
            join_stopped()


def join_stopped() -> None:
    """Stopping takes uvicorn two ticks of a tenth of a second, too long to wait for after each of a hundred."""
    for thread in _stopping:
        thread.join(DEADLINE)
        assert not thread.is_alive()
    _stopping.clear()


def wait_for_running(client: httpx.Client, count: int) -> None:
    """Until the server holds at most so many requests, running or waiting."""
    deadline = time.monotonic() + DEADLINE
    while sum(_gauges(client)) > count:
        assert time.monotonic() < deadline, "the server did not let go of an aborted request"


def _gauges(client: httpx.Client) -> list[int]:
    endings = ("requests_processing", "requests_deferred", "requests_running", "requests_waiting")
    lines = [line.split() for line in client.get("/metrics").text.splitlines()]
    return [int(value) for name, value in lines if name.endswith(endings)]
