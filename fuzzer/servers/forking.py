"""Fresh processes of one Python module without its imports, forked by a process that has done them."""

from __future__ import annotations

import atexit
import ctypes
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import IO, NamedTuple

from fuzzer.servers.fork_server import MOST_BYTES, ROOM

_PR_SET_CHILD_SUBREAPER = 36
_IDLE_THREADS = "ignore::DeprecationWarning"
"""From Python 3.12 on, forking beside other threads gives a warning: those of numpy's BLAS, of which we use nothing."""


class CannotForkError(Exception):
    """There is no fork server, or it does not answer: a process has to be started in the ordinary way."""


class ForkedProcess:
    """A process that a fork server made for us, as far as ``subprocess.Popen`` describes one."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.returncode: int | None = None
        self._handle = os.pidfd_open(pid)
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        with self._lock:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
                    os.close(self._handle)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """How it ended; raises subprocess.TimeoutExpired where it has not within ``timeout`` seconds."""
        status = self.poll()
        if status is None:
            select.select([self._handle], [], [], timeout)
            status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return status

    def terminate(self) -> None:
        """Ask it to end."""
        with self._lock:
            if self.returncode is None:
                signal.pidfd_send_signal(self._handle, signal.SIGTERM)


def forked(module: str, arguments: Sequence[str], environment: Mapping[str, str], stderr: int) -> ForkedProcess:
    """``module.run(arguments)`` in a process of its own, with pipes for input and output.

    Raises CannotForkError where this system has no such processes, or the module cannot be imported.
    """
    if not _inherits_orphans():
        raise CannotForkError
    return _fork_server(module, environment).fork(arguments, environment, stderr)


def prepare(module: str, environment: Mapping[str, str]) -> None:
    """Have a module imported for the processes to come, if this system has such."""
    if _inherits_orphans():
        _fork_server(module, environment)


class _ForkServer:
    """The process that has a module imported; it ends with this one."""

    def __init__(self, module: str, environment: Mapping[str, str]) -> None:
        self._asks, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            python = [sys.executable, "-P", "-W", _IDLE_THREADS, "-m"]
            command = [*python, "fuzzer.servers.fork_server", module, str(theirs.fileno()), ROOM]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        atexit.register(self.close)

    @property
    def alive(self) -> bool:
        """Whether it could be asked."""
        return self._asks.fileno() >= 0 and self._process.poll() is None

    def fork(self, arguments: Sequence[str], environment: Mapping[str, str], stderr: int) -> ForkedProcess:
        """One more process; raises CannotForkError where no answer comes."""
        message = json.dumps([list(arguments), dict(environment)]).encode()
        if len(message) > MOST_BYTES:
            raise CannotForkError
        with ExitStack() as kept, ExitStack() as given:
            stdin, stdout = _pipe(reader=given, writer=kept), _pipe(reader=kept, writer=given)
            pid = self._answer(message, [stdin.reads.fileno(), stdout.writes.fileno(), stderr])
            kept.pop_all()
        return ForkedProcess(pid, stdin.writes, stdout.reads)

    def _answer(self, message: bytes, streams: Sequence[int]) -> int:
        with self._lock:
            try:
                socket.send_fds(self._asks, [message], streams)
                answer = self._asks.recv(MOST_BYTES)
            except OSError:
                answer = b""
            except BaseException:
                # The answer that nobody waited for would be taken for the next one.
                self._asks.close()
                raise
        if not answer:
            raise CannotForkError
        return int(answer)

    def close(self) -> None:
        """End it, not what it forked."""
        self._asks.close()
        self._process.kill()
        self._process.wait()


class _Pipe(NamedTuple):
    reads: IO[bytes]
    writes: IO[bytes]


def _pipe(*, reader: ExitStack, writer: ExitStack) -> _Pipe:
    """A pipe whose ends are closed with these."""
    reads, writes = os.pipe()
    return _Pipe(reader.enter_context(os.fdopen(reads, "rb", 0)), writer.enter_context(os.fdopen(writes, "wb", 0)))


_SERVERS: dict[tuple[str, str], _ForkServer] = {}
_LOCK = threading.Lock()


def _fork_server(module: str, environment: Mapping[str, str]) -> _ForkServer:
    """The fork server of a module as an environment finds it."""
    key = module, environment.get("PYTHONPATH", "")
    with _LOCK:
        known = _SERVERS.get(key)
        if known is not None and known.alive:
            return known
        if known is not None:
            known.close()
        started = _SERVERS[key] = _ForkServer(module, environment)
        return started


@functools.cache
def _inherits_orphans() -> bool:
    """Make this process the parent of what its descendants leave; False where the system cannot do that."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False
