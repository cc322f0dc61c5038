"""vLLM as the rig sees it: attached to, or launched where ``vllm`` is installed."""

from __future__ import annotations

from pathlib import Path

from fuzzer.options import ServerOptions
from fuzzer.servers.engine import Engine
from fuzzer.servers.folder_engine import FolderInstallation
from fuzzer.servers.probed_once import ProbedOnce
from fuzzer.servers.python_engine import PythonLaunch
from fuzzer.servers.vllm_server import ENGINE as NAME
from fuzzer.servers.vllm_server import VllmServer, VllmSetup, speaks_vllm

_START_SECONDS = 600.0
_VARIABLES = {
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
    "VLLM_NO_USAGE_STATS": "1",
}
_CPU_VARIABLES = {"TORCH_COMPILE_DISABLE": "1", "OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
"""One thread computes every sum in one order; compiling would stall the first request for a quarter of a minute."""
_FLAGS = ("--served-model-name", "base", "--max-logprobs", "-1", "--enable-prompt-tokens-details")
_EXACT = ("--dtype", "float32", "--enforce-eager")
_TINY = ("--max-model-len", "512", "--block-size", "32", "--kv-cache-memory-bytes", "67108864", "--max-num-seqs", "8")
"""Blocks smaller than 32 do not work on a CPU, and without a size of the cache it does not start."""

_HYBRID = ("--max-num-batched-tokens", "32")
"""More than a block at once, and the engine dies on a CPU of the first prompt that is longer than one."""


class VllmInstallation(FolderInstallation):
    """``vllm serve`` in our own environment, or in the one that STALEFUZZ_VLLM_PYTHON names."""

    name = NAME
    module = "vllm"
    variable = "STALEFUZZ_VLLM_PYTHON"
    with_cache = ("--enable-prefix-caching",)
    no_cache = ("--no-enable-prefix-caching",)
    # A connector brings blocks from disk or from another server, whether or not prefixes are cached.
    caches = ("--kv-transfer-config", "--kv-offloading-size", "--kv-offloading-backend")
    program = "vllm serve"

    def __init__(self, options: ServerOptions, exact: bool) -> None:
        super().__init__(options, exact)
        self._probed = ProbedOnce()

    def connect(self, url: str) -> VllmServer:
        """The adapter for a target that we started."""
        return self._probed.attached(lambda probed: VllmServer(url, self._setup(versioned=False), probed))

    def connect_reference(self, url: str) -> VllmServer:
        """The adapter for a reference that we started."""
        return VllmServer(url, self._setup(versioned=True))

    def _setup(self, *, versioned: bool) -> VllmSetup:
        folders = self._folders
        return VllmSetup(
            vocabulary=folders.vocabulary,
            window=folders.window,
            recurrent=folders.recurrent,
            paths=tuple(str(path) for path in folders.adapters),
            variables=folders.variables,
            versioned=versioned,
            weights=tuple(str(path) for path in folders.weights),
            forgets=True,
            admin=not versioned,
            reuse=not versioned,
            # On a CPU the workers keep their memory; the scheduler pauses and forgets its blocks all the same.
            sleeps=folders.tiny or "--enable-sleep-mode" in self._flags,
        )

    def _launch(self, model: Path, adapters: list[tuple[str, str]], *flags: str) -> PythonLaunch:
        tiny = self._folders.tiny
        ours = [*_FLAGS, *(_EXACT if self._exact else ()), *(_TINY if tiny else ()), *self._pool()]
        ours += _HYBRID if tiny and self._folders.recurrent else ()
        if adapters:
            modules = [f"{name}={path}" for name, path in adapters]
            ours += ["--enable-lora", "--max-lora-rank", "8", "--max-loras", str(len(adapters))]
            ours += ["--lora-modules", *modules]
        program = (self._python, "-m", "vllm.entrypoints.cli.main", "serve", str(model))
        variables = {**_VARIABLES, **(_CPU_VARIABLES if tiny else {})}
        return PythonLaunch(program, (*ours, *flags), _START_SECONDS, variables)

    def _pool(self) -> tuple[str, ...]:
        """A pool that a few prompts fill; windowed layers have blocks of their own."""
        if not self._folders.tiny:
            return ()
        return ("--num-gpu-blocks-override", "32" if self._folders.window is None else "96")


def _attach(url: str, options: ServerOptions) -> VllmServer:
    return VllmServer(url, VllmSetup(only=options.adapters, admin=options.allow_admin, swaps=options.swaps))


VLLM = Engine(NAME, _attach, speaks_vllm, VllmInstallation, server="vLLM")
