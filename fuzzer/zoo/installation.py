"""Starts zoo servers: with the bug for a target, without it and without caches for its reference."""

from __future__ import annotations

import contextlib
import io
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from fuzzer.errors import UsageError
from fuzzer.options import ServerOptions
from fuzzer.servers.adapter_versions import version_name
from fuzzer.servers.child_environment import child_environment
from fuzzer.servers.fork_server import command_of
from fuzzer.servers.http import Connection
from fuzzer.servers.launched import LaunchedServer
from fuzzer.servers.llama_server import LlamaServer
from fuzzer.servers.probed_once import ProbedOnce
from fuzzer.servers.protocol import Server
from fuzzer.servers.vllm_server import VllmServer, VllmSetup
from fuzzer.zoo.model import Family
from fuzzer.zoo.requests import FIRST_WEIGHTS
from fuzzer.zoo.serve import parse
from fuzzer.zoo.settings import Flavour
from fuzzer.zoo.settings import Settings as ZooSettings
from reports.record import Settings
from scenarios.capabilities import LASTING_IN_PYTHON, ModelShape
from scenarios.environment import adapter_letter

NAME = "zoo"
_START_S = 30.0
_PATHS = ("zoo-adapter-0", "zoo-adapter-1")
_WEIGHTS = (FIRST_WEIGHTS, "zoo-again")


@dataclass(frozen=True, slots=True)
class ZooLaunch:
    """One zoo server: the arguments of ``fuzzer.zoo.serve``."""

    arguments: tuple[str, ...]
    start_seconds: float = _START_S
    fixed_port: int = 0
    picks_port: bool = True
    own: None = None

    @property
    def command(self) -> tuple[str, ...]:
        """What a person would type."""
        return ("stalefuzz", "zoo", "serve", *self.arguments)

    def module(self, port: int) -> tuple[str, list[str]]:
        """What is run; the server takes any free port."""
        return "fuzzer.zoo.serve", list(self.arguments)

    def child_argv(self, port: int) -> list[str]:
        """The same as a command."""
        return command_of(*self.module(port))

    def environment(self) -> dict[str, str]:
        """The environment that it runs in."""
        return child_environment()


class ZooInstallation:
    """Zoo servers of one kind: with the bug for a target, without it and without caches for its reference."""

    takes_settings = False
    build = None
    starts_quickly = True
    tiny_files: tuple[Path, ...] = ()
    program = "the zoo"

    def __init__(self, options: ServerOptions, exact: bool) -> None:
        self.switches: dict[str, tuple[str, ...]] = {}
        self._arguments = options.server_flags
        self._probed = ProbedOnce()
        self._settings = _parsed(self._arguments)

    def target(self, further: tuple[str, ...] = (), setting: tuple[str, ...] = ()) -> LaunchedServer:
        """A server that caches, not yet started."""
        return LaunchedServer(ZooLaunch((*self._arguments, *further)))

    def reference(self) -> LaunchedServer:
        """The same model with nothing planted and nothing cached, not yet started."""
        return LaunchedServer(ZooLaunch(self._reference_arguments()))

    def reference_of(self, weights: int) -> LaunchedServer:
        """The reference with another version of the model's weights, not yet started."""
        return LaunchedServer(ZooLaunch((*self._reference_arguments(), "--weights", _WEIGHTS[weights % len(_WEIGHTS)])))

    def _reference_arguments(self) -> tuple[str, ...]:
        kept = list(self._arguments)
        if "--bug" in kept:
            at = kept.index("--bug")
            kept[at : at + 2] = ["--flavour", self._settings.flavour, "--family", self._settings.shape.family]
        return (*kept, "--no-cache")

    def connect(self, url: str) -> Server:
        """The adapter for a server that we started."""
        if self._settings.flavour is Flavour.VLLM:
            _load(url, {adapter_letter(adapter): path for adapter, path in enumerate(_PATHS)})
            return self._probed.attached(lambda probed: VllmServer(url, self._vllm(versioned=False), probed))
        family = self._settings.shape.family
        window = self._settings.shape.window if family is Family.WINDOW else None
        return LlamaServer(
            url, version=NAME, shape=ModelShape(window, family is Family.HYBRID, LASTING_IN_PYTHON), admin=True
        )

    def connect_reference(self, url: str) -> Server:
        """The adapter for a reference that we started; adapters have a name for each version there."""
        if self._settings.flavour is Flavour.LLAMA:
            return self.connect(url)
        named = {version_name(adapter, version): _path(adapter, version) for adapter in (0, 1) for version in (0, 1)}
        _load(url, named)
        return VllmServer(url, self._vllm(versioned=True))

    def _vllm(self, *, versioned: bool) -> VllmSetup:
        vocabulary = self._settings.shape.vocabulary
        return VllmSetup(
            vocabulary=vocabulary,
            paths=_PATHS,
            weights=_WEIGHTS,
            sleeps=True,
            versioned=versioned,
            admin=not versioned,
            reuse=not versioned,
        )

    def further(self, setting: tuple[str, ...]) -> tuple[str, ...]:
        """None: it takes no settings."""
        return ()

    def settings(self, setting: tuple[str, ...] = ()) -> Settings:
        """What a finding records."""
        return Settings(NAME, NAME, list(self._arguments), f"zoo:{self._settings.shape.family}", [], "")

    def close(self) -> None:
        """Nothing was written."""


def _path(adapter: int, version: int) -> str:
    return _PATHS[(adapter + version) % len(_PATHS)]


def _load(url: str, paths: dict[str, str]) -> None:
    """Load adapters under their names; a server that was started again has lost them."""
    with closing(Connection(url)) as connection:
        for name, path in paths.items():
            connection.post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": path})


def _parsed(arguments: tuple[str, ...]) -> ZooSettings:
    words = io.StringIO()
    try:
        with contextlib.redirect_stderr(words):
            return parse(arguments)
    except SystemExit:
        raise UsageError(words.getvalue().strip().splitlines()[-1]) from None
