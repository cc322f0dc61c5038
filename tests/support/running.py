"""Runs ``stalefuzz`` the way a user does: as a process of its own, in a folder of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzer.models.tiny import tiny_model
from fuzzer.servers.launched import LaunchedServer, launch_embedded
from fuzzer.servers.llama_launch import EXACT

PATIENCE_S = 120.0
"""Only ever reached by a command that hangs."""
SCRIPT = Path(sys.executable).with_name("stalefuzz")


@dataclass(frozen=True)
class Ended:
    """A command that ran to its end; ``out`` is where it was told to write."""

    status: int
    stdout: str
    stderr: str
    out: Path

    @property
    def record(self) -> dict[str, Any]:
        """run.json."""
        record: dict[str, Any] = json.loads((self.out / "run.json").read_text())
        return record

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The events of a kind, in order."""
        lines = (self.out / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    @property
    def said(self) -> str:
        """All that a user saw."""
        return self.stdout + self.stderr


def stalefuzz(
    *words: str | Path, folder: Path, env: dict[str, str] | None = None, patience_s: float = PATIENCE_S
) -> Ended:
    """Run ``stalefuzz words...`` in ``folder`` to its end."""
    with started(*words, folder=folder, env=env) as process:
        stdout, stderr = process.communicate(timeout=patience_s)
    return Ended(process.returncode, stdout, stderr, folder / "stalefuzz-out")


@contextmanager
def started(*words: str | Path, folder: Path, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """``stalefuzz words...`` as a running process, ended in any case."""
    process = subprocess.Popen(
        [str(SCRIPT), *map(str, words)],
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def children(pid: int) -> dict[int, str]:
    """Process ids and command lines of a process's children."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid:
                found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
    return found


def servers_of(pid: int) -> dict[int, str]:
    """Those of its children that are servers."""
    return {child: command for child, command in children(pid).items() if "fuzzer.servers.fork_server" not in command}


def target_among(servers: dict[int, str]) -> int:
    """The process id of the target among the servers of a run."""
    return next(pid for pid, command in servers.items() if "--cache-ram 0" not in command)


def reference_among(servers: dict[int, str]) -> int:
    """The process id of the reference among the servers of a run."""
    return next(pid for pid, command in servers.items() if "--cache-ram 0" in command)


def is_gone(pid: int) -> bool:
    """Whether no process, or only its remains, has that id."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def eventually(condition: Any, what: str) -> None:
    """Wait until ``condition()`` holds; however slow the machine is, it is asked again at once."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.01)


def exploring(folder: Path) -> bool:
    """Whether the run in ``folder`` has begun to explore and has said so."""
    with suppress(OSError, ValueError):
        return bool(json.loads((folder / "stalefuzz-out" / "run.json").read_text())["steps"])
    return False


@contextmanager
def llama_server(*flags: str, tiny: str = "dense") -> Iterator[LaunchedServer]:
    """A llama-server of the user's, with a tiny model and both its adapters."""
    model = tiny_model(tiny)
    adapters: Sequence[str] = [word for path in model.adapters for word in ("--lora", str(path))]
    own = ("--model", str(model.path), *adapters, *EXACT.argv(), "-np", "1", "-c", "4096", "--cache-ram", "64")
    with launch_embedded((*own, *flags)) as server:
        yield server


def masked(text: str) -> str:
    """Text without what differs from run to run or from machine to machine."""
    text = re.sub(r"\d+\.\d+ s\b", "# s", text)
    text = re.sub(r"\bb\d+ \(xllamacpp [\d.]+\)", "BUILD", text)
    text = re.sub(r"/\S*/models/", "CACHE/", text)
    text = re.sub(r"/[0-9a-f]{16}/", "/MODEL/", text)
    text = re.sub(r"\d\.\de[-+]\d\d", "#e", text)
    return re.sub(r"wrong by [\d.]+ \(bound [^)]+\)", "wrong by # (bound #)", text)
