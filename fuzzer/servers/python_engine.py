"""Launches engines that are Python programs, which often live in an environment of their own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from fuzzer.errors import UsageError
from fuzzer.servers.child_environment import child_environment
from fuzzer.servers.llama_flags import LOOPBACK

_QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
"""Nothing is downloaded: models are folders on this machine."""


@dataclass(frozen=True, slots=True)
class PythonLaunch:
    """``program`` with ``flags``; the last of two equal flags wins, so the user's stand behind ours."""

    program: tuple[str, ...]
    flags: tuple[str, ...]
    start_seconds: float
    variables: Mapping[str, str] = field(default_factory=dict)
    picks_port: bool = False
    own: None = None

    @property
    def command(self) -> tuple[str, ...]:
        """The command line that a person would type for the same server."""
        return (*self.program, *self.flags)

    @property
    def fixed_port(self) -> int:
        """The port that the user's flags ask for; 0 leaves it to us."""
        word = last_value(self.flags, "--port")
        return int(word) if word is not None and word.isdecimal() else 0

    def environment(self) -> dict[str, str]:
        """The user's, with what keeps the engine offline and exact; a variable that the user set stays."""
        return {**_QUIET, **self.variables, **child_environment()}

    def module(self, port: int) -> None:
        """None: the engine is none of ours."""

    def child_argv(self, port: int) -> list[str]:
        """The command that is run, under a guard that ends it with us."""
        guard = [sys.executable, "-P", "-m", "fuzzer.servers.guard"]
        return [*guard, *self.command, "--host", LOOPBACK, "--port", str(port)]


def start_command(launch: PythonLaunch, variables: Mapping[str, str]) -> list[str]:
    """The command as a reproducer has it: with {PYTHON} and {PORT}, and its own names for folders of this machine."""
    words = launch.command[1:]
    environment = [f"{name}={value}" for name, value in {**_QUIET, **launch.variables}.items()]
    named = [_renamed(word, variables) for word in words]
    return ["env", *environment, "{PYTHON}", *named, "--host", LOOPBACK, "--port", "{PORT}"]


def _renamed(word: str, variables: Mapping[str, str]) -> str:
    name, sign, path = word.rpartition("=")
    return f"{name}{sign}{{{variables[path]}}}" if path in variables else word


def interpreter(engine: str, module: str, variable: str) -> str:
    """The Python that has the engine: the one that ``variable`` names, else our own; raises UsageError."""
    named = os.environ.get(variable)
    if named:
        found = shutil.which(named)
        if found is None:
            raise UsageError(f"{variable}={named} is not an executable file: give the path of a Python with {engine}")
        return found
    if importlib.util.find_spec(module) is None:
        raise UsageError(
            f"{engine} is not installed beside stalefuzz: install it here, or set {variable} to the Python of an "
            "environment that has it"
        )
    return sys.executable


def last_value(flags: tuple[str, ...], name: str) -> str | None:
    """What the last ``name VALUE`` or ``name=VALUE`` among the flags says."""
    found = None
    for at, word in enumerate(flags):
        if word == name and at + 1 < len(flags):
            found = flags[at + 1]
        elif word.startswith(f"{name}="):
            found = word[len(name) + 1 :]
    return found


def without(flags: tuple[str, ...], *names: str) -> tuple[str, ...]:
    """The flags without those called ``names``, whatever their values, also where a name goes on: ``--name.part``."""
    kept: list[str] = []
    leaving = False
    for word in flags:
        if word.startswith("--"):
            name = word.partition("=")[0].replace("_", "-")
            leaving = any(name == left or name.startswith(f"{left}.") for left in names)
        if not leaving:
            kept.append(word)
    return tuple(kept)


def number(flags: tuple[str, ...], name: str, otherwise: int) -> int:
    """The number that the flags give for ``name``."""
    word = last_value(flags, name)
    return int(word) if word is not None and word.lstrip("-").isdecimal() else otherwise
