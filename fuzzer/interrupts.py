"""Ctrl-C and SIGTERM end a command at its next safe point: what was found is written, what was started is ended.

An exception raised wherever the signal happens to arrive could leave a lock of the standard library held, and the
command would hang instead of ending. Who does not want to wait signals twice: the servers end with our process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fuzzer.exit_status import Exit

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Whether the user has asked the command to end."""

    def __init__(self) -> None:
        self.asked = False

    def check(self) -> None:
        """A safe point: raises KeyboardInterrupt if the command is to end."""
        if self.asked:
            raise KeyboardInterrupt

    def note(self, number: int, frame: FrameType | None) -> None:
        """Signal handler."""
        if self.asked:
            os._exit(Exit.INTERRUPTED)
        self.asked = True


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Take note of SIGINT and SIGTERM inside the block instead of dying by them."""
    interruption = Interruption()
    before = [signal.signal(number, interruption.note) for number in _SIGNALS]
    try:
        yield interruption
    finally:
        for number, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(number, handler)
