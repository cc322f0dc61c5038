"""Another client of a server under test, who does one thing over and over."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx

PATIENCE_S = 60.0
PAUSE_S = 0.02
"""Between two things that it does, so that the server has time for others."""


@contextmanager
def somebody_else(url: str, act: Callable[[httpx.Client, int], httpx.Response]) -> Iterator[None]:
    """Does ``act`` with a number that counts up, from before the body to after it."""
    gone, begun = threading.Event(), threading.Event()

    def use() -> None:
        with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
            for number in itertools.count():
                act(client, number).raise_for_status()
                begun.set()
                if gone.wait(PAUSE_S):
                    return

    thread = threading.Thread(target=use)
    thread.start()
    try:
        assert begun.wait(PATIENCE_S)
        yield
    finally:
        gone.set()
        thread.join()
