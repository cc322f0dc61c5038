"""mlx-lm as the rig sees it: attached to, or launched on this machine's CPU or GPU."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from fuzzer.errors import UsageError
from fuzzer.models import hf_vocabulary
from fuzzer.models.hf_tiny import AdapterLayout
from fuzzer.options import ServerOptions
from fuzzer.servers.engine import Engine
from fuzzer.servers.folder_engine import FolderInstallation
from fuzzer.servers.http import Connection
from fuzzer.servers.mlx_lm_server import ENGINE as NAME
from fuzzer.servers.mlx_lm_server import MlxServer, cuts_nothing_back, version_at
from fuzzer.servers.probed_texts import probed_texts
from fuzzer.servers.python_engine import PythonLaunch
from fuzzer.servers.texts import Texts
from scenarios.prompts import TokenSpace

_SPECIAL_TOKENS = 4
_START_SECONDS = 120.0
_CONTEXT = 2048
"""Of a server of the user's, which does not tell."""


class MlxInstallation(FolderInstallation):
    """``mlx_lm.server`` in our own environment, or in the one that STALEFUZZ_MLX_PYTHON names."""

    name = NAME
    module = "mlx_lm"
    variable = "STALEFUZZ_MLX_PYTHON"
    layout = AdapterLayout.MLX
    no_cache = ("--prompt-cache-size", "0")
    starts_quickly = True
    program = "mlx_lm.server"

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
            whole_entries=folders.recurrent,
            model=folders.model,
            variables=folders.variables,
            adapters=folders.adapters,
        )

    connect_reference = connect

    def _launch(self, model: Path, adapters: list[tuple[str, str]], *flags: str) -> PythonLaunch:
        # Requests name the folders of their adapters themselves.
        program = (self._python, "-m", "mlx_lm", "server")
        return PythonLaunch(program, ("--model", str(model), *flags), _START_SECONDS)


def _tiny_texts() -> tuple[Texts, TokenSpace]:
    texts = Texts(hf_vocabulary.pieces())
    return texts, TokenSpace(_SPECIAL_TOKENS, len(texts.pieces) - _SPECIAL_TOKENS)


def _attach(url: str, options: ServerOptions) -> MlxServer:
    if options.adapters:
        raise UsageError("mlx_lm.server takes adapters as paths on its own machine: launch it, or leave --adapter out")
    texts, space = probed_texts(url, {})
    with closing(MlxServer(url, texts, space=space, context=_CONTEXT)) as tried:
        whole_entries = cuts_nothing_back(tried)
    return MlxServer(url, texts, space=space, context=_CONTEXT, whole_entries=whole_entries)


def _speaks(connection: Connection) -> bool:
    return bool(version_at(connection))


MLX_LM = Engine(NAME, _attach, _speaks, MlxInstallation, server="mlx_lm.server")
