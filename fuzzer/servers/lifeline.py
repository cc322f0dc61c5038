"""Ties a child's life to its parent's: standard input is a pipe which only the parent holds open.

However the parent ends, SIGKILL included, the kernel closes that pipe. A parent-death signal would follow the *thread*
that forked the child, so that a server started by a worker thread would die with the worker.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import stat
import sys

STDIN = 0
STDERR = 2
# llama-server logs some 800 bytes a request, half a gigabyte an hour at full speed.
MAX_LOG_BYTES = 8 * 1024 * 1024
CHECK_SECONDS = 5.0


def end_with_parent_even_while_busy() -> None:
    """Let the kernel end this process (SIGIO) when the pipe closes, even while C++ holds the interpreter lock.

    Loading a model holds that lock, for minutes with a large one. Elsewhere than on Linux ``wait`` sees the end of the
    pipe once the model is loaded.
    """
    if sys.platform != "linux" or not stat.S_ISFIFO(os.fstat(STDIN).st_mode):
        return
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(STDIN, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(STDIN, fcntl.F_SETFL, fcntl.fcntl(STDIN, fcntl.F_GETFL) | os.O_ASYNC)


def wait() -> None:
    """Block until the parent has gone; meanwhile keep the log, this process's standard error, from growing for ever."""
    while True:
        readable, _, _ = select.select([STDIN], [], [], CHECK_SECONDS)
        if readable and not os.read(STDIN, 4096):
            return
        _trim_log()


def _trim_log() -> None:
    log = os.fstat(STDERR)
    if stat.S_ISREG(log.st_mode) and log.st_size > MAX_LOG_BYTES:
        os.ftruncate(STDERR, 0)
