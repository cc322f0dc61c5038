"""Starts, watches and ends servers of our own, whatever their engine."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from fuzzer.errors import ServerStartError, UsageError
from fuzzer.servers import loopback
from fuzzer.servers.child_environment import child_environment
from fuzzer.servers.fork_server import command_of
from fuzzer.servers.forking import CannotForkError, ForkedProcess, forked
from fuzzer.servers.llama_flag_table import HOST, MODEL, PORT
from fuzzer.servers.llama_flags import LOOPBACK, LlamaFlags, missing_files, parse_flags
from fuzzer.servers.own_files import OwnFiles
from fuzzer.servers.server_log import ServerLog
from fuzzer.servers.start_failure import cause_in, ending

START_SECONDS = 120.0
STOP_SECONDS = 5.0
DYING_SECONDS = 0.5
POLL_SECONDS = 0.003
PORT_TRIES = 3
TAIL_LINES = 20
MESSAGE_LINES = 8


_Process = subprocess.Popen[bytes] | ForkedProcess


class Launch(Protocol):
    """What to start, and how to see that it is there."""

    @property
    def start_seconds(self) -> float:
        """How long the start may take."""
        ...

    @property
    def command(self) -> tuple[str, ...]:
        """The command line that a person would type for the same server."""
        ...

    @property
    def fixed_port(self) -> int:
        """The port that the user's flags ask for; 0 leaves it to us."""
        ...

    @property
    def picks_port(self) -> bool:
        """Whether the server takes any free port by itself and announces it."""
        ...

    @property
    def own(self) -> OwnFiles | None:
        """The places in which a process finds its files; None where it reads them where they are."""
        ...

    def module(self, port: int) -> tuple[str, list[str]] | None:
        """A module of ours with a ``run``, and its arguments, where the command comes down to that."""
        ...

    def child_argv(self, port: int) -> list[str]:
        """The command that is run."""
        ...

    def environment(self) -> dict[str, str]:
        """The environment that it runs in."""
        ...


@dataclass(frozen=True, slots=True)
class LlamaLaunch:
    """What to start: llama-server flags, and the executable that takes them when it is not the embedded one.

    ``wheel`` is a folder with another xllamacpp than the installed one. ``own`` are the places in which the process has
    the files that the flags name.
    """

    flags: LlamaFlags
    executable: Path | None = None
    start_seconds: float = START_SECONDS
    wheel: Path | None = None
    own: OwnFiles | None = None

    @property
    def command(self) -> tuple[str, ...]:
        """The command line that a person would type for the same server."""
        return (str(self.executable or "llama-server"), *self.flags.argv())

    @property
    def fixed_port(self) -> int:
        """The port that the flags ask for; 0 leaves it to us."""
        return int(self.flags.get(PORT) or 0)

    @property
    def picks_port(self) -> bool:
        """The embedded server announces the port that it took."""
        return self.executable is None

    def environment(self) -> dict[str, str]:
        """Ours, without what would set llama-server's flags."""
        return child_environment(self.wheel)

    def module(self, port: int) -> tuple[str, list[str]] | None:
        """That of the embedded server; an executable has none."""
        return ("fuzzer.servers.embedded", self._argv(port)) if self.executable is None else None

    def child_argv(self, port: int) -> list[str]:
        """The command that is run."""
        own = self.module(port) or ("fuzzer.servers.guard", [str(self.executable), *self._argv(port)])
        return command_of(*own)

    def _argv(self, port: int) -> list[str]:
        flags = self.flags.moved(self.own.model, self.own.adapters) if self.own is not None else self.flags
        settings = {**flags.settings, HOST: LOOPBACK, PORT: port}
        return list(replace(flags, settings=settings).argv())


def launch_embedded(
    flags: Sequence[str],
    *,
    start_seconds: float = START_SECONDS,
    wheel: Path | None = None,
    own: OwnFiles | None = None,
) -> LaunchedServer:
    """The llama-server in the installed xllamacpp wheel, or in that of the folder ``wheel``, not yet started.

    ``own`` are places for the files that the flags name. Raises UsageError for flags that cannot work.
    """
    parsed = _checked(parse_flags(flags))
    if parsed.get(MODEL) is None:
        raise UsageError("llama-server needs a model: give its file with --model.")
    return LaunchedServer(LlamaLaunch(parsed, None, start_seconds, wheel, own))


def launch_binary(
    path: Path, flags: Sequence[str], *, start_seconds: float = START_SECONDS, own: OwnFiles | None = None
) -> LaunchedServer:
    """A llama-server executable, not yet started; flags that we do not know are passed on as they are."""
    # A path in the working folder has lost its "./" by now; a bare name may also be found like a command.
    executable = shutil.which(path.absolute()) or shutil.which(path)
    if executable is None:
        raise UsageError(f"{path} is not an executable file: --binary takes the path of a llama-server.")
    parsed = _checked(parse_flags(flags, keep_unknown=True))
    return LaunchedServer(LlamaLaunch(parsed, Path(executable), start_seconds, own=own))


def _checked(flags: LlamaFlags) -> LlamaFlags:
    for path in missing_files(flags):
        raise UsageError(f"There is no file {path}: check --model and --lora.")
    return flags


class LaunchedServer:
    """One server process on a loopback port; ``start`` or ``with`` starts it, ``restart`` gives it a fresh life.

    Several can be started at once from several threads. ``url`` changes with each start unless the flags fix a port.
    Each process begins with the first versions of its own files, whose places are there as long as it is.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.url = ""
        self.pid = 0
        self._process: _Process | None = None
        self._log: ServerLog | None = None
        self._last_words = ""
        self._ready = False

    @property
    def command(self) -> tuple[str, ...]:
        return self.launch.command

    @property
    def returncode(self) -> int | None:
        """How the process ended (minus the signal's number for a signal); None while it runs or before it started."""
        return self._process.poll() if self._process else None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start and wait until it answers; raises ServerStartError with the cause and the last log lines."""
        if self.launch.picks_port or self.launch.fixed_port:
            return self._start_on(self.launch.fixed_port)
        # An executable is told its port, which somebody may take between our look and its start.
        for _ in range(PORT_TRIES - 1):
            port = loopback.free_port()
            with contextlib.suppress(loopback.PortInUseError):
                return self._start_on(port)
        return self._start_on(loopback.free_port())

    def stop(self) -> None:
        """End the process for certain, and everything that it started; harmless when it is not running."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._end(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._forget_log()
        if self.launch.own is not None:
            self.launch.own.remove()
        self._ready = False

    def restart(self) -> None:
        self.stop()
        self.start()

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait(self, seconds: float) -> int | None:
        """How the process ended, given that long to do so: a crash breaks connections some milliseconds before."""
        if self._process is None:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode

    def ending(self) -> str:
        """How the process ended, in words, once it has; that it hangs, while it has not."""
        if self._process is None:
            return "it was not started"
        status = self.wait(DYING_SECONDS)
        return "it hangs" if status is None else ending(status)

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """The last log lines; after ``stop`` the last words of the process that was stopped."""
        return self._log.tail(lines) if self._log else "\n".join(self._last_words.splitlines()[-lines:])

    def _start_on(self, port: int) -> None:
        if self.alive():
            raise RuntimeError("this server is running already: restart it, or stop it first")
        self.stop()
        if port and not loopback.is_free(port):
            raise loopback.PortInUseError(f"Port {port} is in use: leave --port out or name a free one.")
        deadline = time.monotonic() + self.launch.start_seconds
        self._log = ServerLog()
        self._process = self._spawn(self._log, port)
        try:
            self._await_announcement(self._process, port, deadline)
            self._await_health(deadline)
        except BaseException:
            self.stop()
            raise

    def _spawn(self, log: ServerLog, port: int) -> _Process:
        if self.launch.own is not None:
            self.launch.own.lay_out()
        module = self.launch.module(port)
        if module is not None:
            with contextlib.suppress(CannotForkError):
                return forked(*module, self.launch.environment(), log.fileno())
        return subprocess.Popen(
            self.launch.child_argv(port),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.fileno(),
            env=self.launch.environment(),
            # Ctrl-C in the terminal is for stalefuzz, which still needs its servers to finish the write.
            start_new_session=True,
        )

    def _await_announcement(self, process: _Process, port: int, deadline: float) -> None:
        """Read the one line that a child prints: its process id, and its address where it chose that itself."""
        assert process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise self._failure(f"it was silent for {self.launch.start_seconds:g} s")
            part = os.read(process.stdout.fileno(), 4096)
            if not part:
                raise self._failure(ending(process.wait(STOP_SECONDS)))
            line += part
        announced = json.loads(line)
        self.pid = announced["pid"]
        self.url = announced.get("url", f"http://{LOOPBACK}:{port}")

    def _await_health(self, deadline: float) -> None:
        while not (self.alive() and loopback.is_healthy(self.url)):
            if self.returncode is not None:
                raise self._failure(ending(self.returncode))
            if time.monotonic() > deadline:
                raise self._failure(f"it did not answer within {self.launch.start_seconds:g} s")
            time.sleep(POLL_SECONDS)
        self._ready = True

    def _failure(self, otherwise: str) -> ServerStartError:
        cause = cause_in(self.log_tail(200))
        kind = loopback.PortInUseError if cause and cause.port_in_use else ServerStartError
        log = "".join(f"\n    {line}" for line in self.log_tail(MESSAGE_LINES).splitlines())
        sentence = f"{self.command[0]} did not start: {cause.sentence if cause else otherwise}."
        return kind(f"{sentence} Its last log lines:{log}" if log else sentence)

    def _end(self, process: _Process) -> None:
        if self._ready:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
                return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _forget_log(self) -> None:
        if self._log:
            self._last_words = self._log.tail(TAIL_LINES)
            self._log.close()
            self._log = None
