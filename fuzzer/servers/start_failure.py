"""Says in words why a llama-server did not start, from the lines that it logged."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

# The first that matches wins: llama.cpp logs the particular before the general.
CAUSES = (
    (r"(xllamacpp \S+ does not know .*?)\.?$", r"\1"),
    (r"couldn't bind HTTP server socket.* port: (\d+)", r"port \1 is in use; leave --port out or name a free one"),
    (r"failed to load lora adapter '(.+)'", r"the adapter \1 is no LoRA GGUF for this model"),
    (r"invalid magic characters[^\n]*\n(?:.*\n)*?.*failed to load model,? '(.+)'", r"\1 is not a GGUF file"),
    (r"failed to create.context with model '(.+)'", r"its settings do not fit the model \1"),
    (r"failed to load model,? '(.+)'", r"the model \1 cannot be loaded"),
    (r"No module named '(xllamacpp)'", r"the \1 wheel is not installed"),
)


@dataclass(frozen=True, slots=True)
class Cause:
    sentence: str
    port_in_use: bool


def cause_in(log: str) -> Cause | None:
    """The cause that a log shows; None when it shows none that we know."""
    for pattern, sentence in CAUSES:
        match = re.search(pattern, log, re.MULTILINE)
        if match:
            return Cause(match.expand(sentence), port_in_use="couldn't bind" in pattern)
    return None


def ending(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"it exited with status {status}"
    if -status == signal.SIGILL:
        return "this build uses processor instructions that this machine lacks; install another version"
    return f"it was ended by {signal.Signals(-status).name}"
