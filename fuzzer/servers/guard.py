"""Runs an executable that must not outlive stalefuzz: ``python -P -m fuzzer.servers.guard EXECUTABLE ARGS...``.

A llama-server executable does not watch its standard input, so this process does it instead: at the end of its own
input it kills the executable with everything that it started, and it ends the way the executable ended. Prints one line
of JSON with the executable's process id.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from threading import Thread
from types import FrameType

from fuzzer.servers import lifeline


def main(command: list[str]) -> int:
    _lead_a_group()
    try:
        # Standard output carries the process id alone: what the executable prints there belongs to the log.
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=lifeline.STDERR)
    except OSError as error:
        print(f"{command[0]} cannot be run: {error.strerror}.", file=sys.stderr)
        return 127
    signal.signal(signal.SIGTERM, _passes_on_to(child))
    Thread(target=_kill_group_without_parent, daemon=True).start()
    print(json.dumps({"pid": child.pid}), flush=True)
    return child.wait()


def _lead_a_group() -> None:
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)


def _passes_on_to(child: subprocess.Popen[bytes]) -> Callable[[int, FrameType | None], None]:
    def terminate(_signal: int, _frame: FrameType | None) -> None:
        child.terminate()

    return terminate


def _kill_group_without_parent() -> None:
    lifeline.wait()
    # The executable may be a script with the server as its child: the group takes all of them, this process too.
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _end_like(status: int) -> None:
    """Exit with the executable's status, or by the signal that ended it."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    _end_like(main(sys.argv[1:]))
