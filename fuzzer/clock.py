"""The time that a command has."""

from __future__ import annotations

import time


class Clock:
    """Seconds since the command began, and until it has to be over."""

    def __init__(self, limit_s: float) -> None:
        self._began = time.monotonic()
        self._limit_s = limit_s

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def over(self) -> bool:
        """Whether the time is used up."""
        return self.elapsed() >= self._limit_s
