"""The time that a command has."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Seconds since the command began, and until it has to be over."""

    def __init__(self, limit_s: float, *, stopped: Callable[[], bool] = lambda: False) -> None:
        self._began = time.monotonic()
        self._limit_s = limit_s
        self._stopped = stopped

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def over(self) -> bool:
        """Whether the time is used up, or the user wants no more."""
        return self.elapsed() >= self._limit_s or self._stopped()
