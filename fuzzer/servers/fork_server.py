"""``python -P -m fuzzer.servers.fork_server MODULE SOCKET``: imports a module, and forks a server when it is asked.

Importing is most of what a fresh server costs, and each confirmation of a finding takes a dozen of them. What is asked
for comes over the socket: the arguments and the environment as JSON, and three descriptors for the standard streams;
the answer is the process id. A server is no child of this process: it belongs to whoever asked, who has to be a
"child subreaper" (prctl(2)) to inherit it.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

MOST_BYTES = 1 << 17
"""Of one message."""
ROOM = " " * 4096
"""A last argument, over which the command lines of servers are written for ``ps``."""
_ARG_START, _ARG_END = 45, 46
"""Fields of /proc/self/stat after the process's name: where its command line lies in memory (proc_pid_stat(5))."""


def main(argv: Sequence[str]) -> None:
    """Fork until nobody is left who could ask."""
    module, descriptor = argv[0], int(argv[1])
    run: Callable[[list[str]], None] = import_module(module).run
    _look_like(command_of(__spec__.name, [module]))
    with socket.socket(fileno=descriptor) as asked:
        while True:
            message, streams, _, _ = socket.recv_fds(asked, MOST_BYTES, 3)
            if not message:
                return None
            arguments, environment = json.loads(message)
            pid = _forked(streams)
            if pid == 0:
                asked.close()
                os.environ.clear()
                os.environ.update(environment)
                _look_like(command_of(module, arguments))
                return run(arguments)
            asked.send(str(pid).encode())
            for stream in streams:
                os.close(stream)


def command_of(module: str, arguments: Sequence[str]) -> list[str]:
    """A module of ours as a command; packages in the working folder do not shadow ours."""
    return [sys.executable, "-P", "-m", module, *arguments]


def _forked(streams: Sequence[int]) -> int:
    """The process id of a grandchild, by now an orphan; 0 in that process, whose standard streams ``streams`` are."""
    told, tells = os.pipe()
    between = os.fork()
    if between:
        os.close(tells)
        with os.fdopen(told, "rb") as pipe:
            pid = int(pipe.read())
        os.waitpid(between, 0)
        return pid
    pid = os.fork()
    if pid:
        # Whoever asked may end the whole group as soon as it knows the number.
        os.setpgid(pid, pid)
        os.write(tells, str(pid).encode())
        os._exit(0)
    os.setpgid(0, 0)
    for descriptor in (told, tells):
        os.close(descriptor)
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    return 0


def _look_like(command: Sequence[str]) -> None:
    """Give this process another command line, as ``ps`` shows it."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    words = b"\0".join(os.fsencode(word) for word in command)
    ctypes.memmove(start, words[: end - start - 1].ljust(end - start, b"\0"), end - start)


if __name__ == "__main__":
    main(sys.argv[1:])
