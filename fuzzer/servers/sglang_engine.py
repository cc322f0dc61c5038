"""SGLang as the rig sees it: attached to, or launched where ``sglang`` is importable."""

from __future__ import annotations

from pathlib import Path

from fuzzer.options import ServerOptions
from fuzzer.servers.engine import Engine
from fuzzer.servers.folder_engine import FolderInstallation
from fuzzer.servers.python_engine import PythonLaunch
from fuzzer.servers.sglang_server import ENGINE as NAME
from fuzzer.servers.sglang_server import SglangServer, SglangSetup, speaks_sglang

_START_SECONDS = 600.0
_FLAGS = ("--enable-cache-report", "--sleep-on-idle")
_TINY = ("--device", "cpu", "--attention-backend", "torch_native", "--max-running-requests", "16")
_POOL = 4096
_TINY_CONTEXT = 1024
_EXACT = ("--dtype", "float32")
_VARIABLES = {"SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": "1"}


class SglangInstallation(FolderInstallation):
    """``sglang.launch_server`` in our own environment, or in the one that STALEFUZZ_SGLANG_PYTHON names."""

    name = NAME
    module = "sglang"
    variable = "STALEFUZZ_SGLANG_PYTHON"
    no_cache = ("--disable-radix-cache",)
    # Tiers below the radix cache, with which a server that has none does not start.
    caches = ("--enable-hierarchical-cache", "--enable-lmcache")
    program = "sglang.launch_server"

    def connect(self, url: str) -> SglangServer:
        """The adapter for a target that we started."""
        return SglangServer(url, self._setup(versioned=False))

    def connect_reference(self, url: str) -> SglangServer:
        """The adapter for a reference that we started."""
        return SglangServer(url, self._setup(versioned=True))

    def _setup(self, *, versioned: bool) -> SglangSetup:
        folders = self._folders
        return SglangSetup(
            vocabulary=folders.vocabulary,
            context=_TINY_CONTEXT if folders.tiny else folders.context,
            window=folders.window,
            paths=tuple(str(path) for path in folders.adapters),
            variables=folders.variables,
            versioned=versioned,
            weights=tuple(str(path) for path in folders.weights),
            admin=not versioned,
            # On a CPU the memory stays where it is; the scheduler forgets its cache all the same.
            sleeps=folders.tiny or "--enable-memory-saver" in self._flags,
        )

    def _launch(self, model: Path, adapters: list[tuple[str, str]], *flags: str) -> PythonLaunch:
        tiny = self._folders.tiny
        ours = ["--model-path", str(model), *_FLAGS, *(_EXACT if self._exact else ())]
        if tiny:
            ours += [*_TINY, "--max-total-tokens", str(_POOL), "--context-length", str(_TINY_CONTEXT)]
        if adapters:
            ours += ["--enable-lora", "--max-loras-per-batch", str(len(adapters) + 1), "--max-lora-rank", "8"]
            ours += ["--lora-backend", "torch_native"] if tiny else []
            ours += ["--lora-target-modules", "q_proj", "k_proj", "v_proj", "o_proj"]
            ours += ["--lora-paths", *(f"{name}={path}" for name, path in adapters)]
        program = (self._python, "-m", "sglang.launch_server")
        return PythonLaunch(program, (*ours, *flags), _START_SECONDS, _VARIABLES if tiny else {})


def _attach(url: str, options: ServerOptions) -> SglangServer:
    return SglangServer(url, SglangSetup(only=options.adapters, admin=options.allow_admin, swaps=options.swaps))


SGLANG = Engine(NAME, _attach, speaks_sglang, SglangInstallation, server="SGLang")
