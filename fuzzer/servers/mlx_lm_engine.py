"""mlx-lm as the rig sees it: attached to, or launched on this machine's CPU or GPU."""

from __future__ import annotations

from pathlib import Path

from fuzzer.errors import UsageError
from fuzzer.models import hf_vocabulary
from fuzzer.models.hf_folders import hf_folders
from fuzzer.models.hf_tiny import AdapterLayout
from fuzzer.options import ServerOptions
from fuzzer.servers.engine import Engine
from fuzzer.servers.http import Connection
from fuzzer.servers.launched import LaunchedServer
from fuzzer.servers.mlx_lm_server import ENGINE as NAME
from fuzzer.servers.mlx_lm_server import MlxServer, version_at
from fuzzer.servers.probed_texts import probed_texts
from fuzzer.servers.python_engine import PythonLaunch, interpreter, start_command
from fuzzer.servers.texts import Texts
from reports.record import Settings
from scenarios.prompts import TokenSpace

_SPECIAL_TOKENS = 4
_START_SECONDS = 120.0
_NO_CACHE: tuple[str, ...] = ("--prompt-cache-size", "0")
_VARIABLE = "STALEFUZZ_MLX_PYTHON"


class MlxInstallation:
    """``mlx_lm.server`` in our own environment, or in the one that STALEFUZZ_MLX_PYTHON names."""

    takes_settings = False
    build = None
    reference_of = None
    starts_quickly = True
    program = "mlx_lm.server"

    def __init__(self, options: ServerOptions, exact: bool) -> None:
        self.switches = {"--prompt-cache-size 0": _NO_CACHE}
        self._folders = hf_folders(options, AdapterLayout.MLX, NAME)
        self._flags = options.server_flags
        self._python = interpreter(NAME, "mlx_lm", _VARIABLE)

    @property
    def tiny_files(self) -> tuple[Path, ...]:
        """Model and adapters of ours."""
        return self._folders.tiny_files

    def target(self, further: tuple[str, ...] = (), setting: tuple[str, ...] = ()) -> LaunchedServer:
        """A server that caches, not yet started."""
        return LaunchedServer(self._launch(*self._flags, *further))

    def reference(self) -> LaunchedServer:
        """The same model with the prompt cache off, not yet started."""
        return LaunchedServer(self._launch(*self._flags, *_NO_CACHE))

    def connect(self, url: str) -> MlxServer:
        """The adapter for a server that we started."""
        folders = self._folders
        texts, space = _tiny_texts() if folders.tiny else probed_texts(url, {})
        return MlxServer(
            url,
            texts,
            space=space,
            context=folders.context,
            window=folders.window,
            model=folders.model,
            variables=folders.variables,
            adapters=folders.adapters,
        )

    connect_reference = connect

    def settings(self, setting: tuple[str, ...] = ()) -> Settings:
        """What a finding records."""
        folders = self._folders
        start = start_command(self._launch(*self._flags), folders.variables)
        adapters = list(folders.adapter_names)
        return Settings(NAME, "", list(self._flags), folders.model_name, adapters, "", start=start)

    def close(self) -> None:
        """Nothing was written."""

    def _launch(self, *flags: str) -> PythonLaunch:
        program = (self._python, "-m", "mlx_lm", "server")
        return PythonLaunch(program, ("--model", str(self._folders.model), *flags), _START_SECONDS)


def _tiny_texts() -> tuple[Texts, TokenSpace]:
    texts = Texts(hf_vocabulary.pieces())
    return texts, TokenSpace(_SPECIAL_TOKENS, len(texts.pieces) - _SPECIAL_TOKENS)


def _attach(url: str, options: ServerOptions) -> MlxServer:
    if options.adapters:
        raise UsageError("mlx_lm.server takes adapters as paths on its own machine: launch it, or leave --adapter out")
    texts, space = probed_texts(url, {})
    return MlxServer(url, texts, space=space, context=2048)


def _speaks(connection: Connection) -> bool:
    return bool(version_at(connection))


MLX_LM = Engine(NAME, _attach, _speaks, MlxInstallation, server="mlx_lm.server")
