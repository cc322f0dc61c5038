"""Where commands print: plain text where nobody watches or NO_COLOR asks for it."""

from __future__ import annotations

import os
import sys

from rich.console import Console


class _Patient(Console):
    """Goes on in silence when whoever reads the output has left: what was found is in the files."""

    def on_broken_pipe(self) -> None:
        """Called by rich instead of raising BrokenPipeError; its own way to end would look like a finding."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def console() -> Console:
    """The console on standard output."""
    return _Patient(force_terminal=False if os.environ.get("NO_COLOR") else None)
