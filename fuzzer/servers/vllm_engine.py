"""vLLM as the rig sees it: attached to, or launched where ``vllm`` is installed."""

from __future__ import annotations

from pathlib import Path

from fuzzer.models.hf_folders import hf_folders
from fuzzer.models.hf_tiny import AdapterLayout
from fuzzer.options import ServerOptions
from fuzzer.servers.adapter_versions import all_versions, first_versions, version_of
from fuzzer.servers.engine import Engine
from fuzzer.servers.launched import LaunchedServer
from fuzzer.servers.python_engine import PythonLaunch, interpreter, start_command
from fuzzer.servers.vllm_server import ENGINE as NAME
from fuzzer.servers.vllm_server import Probed, VllmServer, VllmSetup, speaks_vllm
from reports.record import Settings

_START_SECONDS = 600.0
_VARIABLE = "STALEFUZZ_VLLM_PYTHON"
_NO_CACHE: tuple[str, ...] = ("--no-enable-prefix-caching",)
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


class VllmInstallation:
    """``vllm serve`` in our own environment, or in the one that STALEFUZZ_VLLM_PYTHON names."""

    takes_settings = False
    build = None
    starts_quickly = False
    program = "vllm serve"

    def __init__(self, options: ServerOptions, exact: bool) -> None:
        self.switches = {"--no-enable-prefix-caching": _NO_CACHE}
        self._exact = exact
        self._folders = hf_folders(options, AdapterLayout.PEFT, NAME)
        self._flags = options.server_flags
        self._probed: Probed | None = None
        self._python = interpreter(NAME, "vllm", _VARIABLE)

    @property
    def tiny_files(self) -> tuple[Path, ...]:
        """Model and adapters of ours."""
        return self._folders.tiny_files

    def target(self, further: tuple[str, ...] = (), setting: tuple[str, ...] = ()) -> LaunchedServer:
        """A server that caches, not yet started."""
        return LaunchedServer(self._target(*further))

    def reference(self) -> LaunchedServer:
        """The same model without prefix caching, each version of each adapter under a name of its own."""
        return LaunchedServer(self._launch(all_versions(self._folders.adapters), *self._flags, *_NO_CACHE))

    def reference_of(self, weights: int) -> LaunchedServer:
        """The reference with another version of the model's weights, not yet started."""
        model = version_of(self._folders.weights, weights)
        launch = self._launch(all_versions(self._folders.adapters), *self._flags, *_NO_CACHE, model=model)
        return LaunchedServer(launch)

    def connect(self, url: str) -> VllmServer:
        """The adapter for a target that we started."""
        server = VllmServer(url, self._setup(versioned=False), self._probed)
        self._probed = server.probed
        return server

    def connect_reference(self, url: str) -> VllmServer:
        """The adapter for a reference that we started."""
        return VllmServer(url, self._setup(versioned=True))

    def settings(self, setting: tuple[str, ...] = ()) -> Settings:
        """What a finding records."""
        folders = self._folders
        start = start_command(self._target(), folders.variables)
        adapters = list(folders.adapter_names)
        return Settings(NAME, "", list(self._flags), folders.model_name, adapters, "", start=start)

    def close(self) -> None:
        """Nothing was written."""

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

    def _target(self, *further: str) -> PythonLaunch:
        return self._launch(first_versions(self._folders.adapters), "--enable-prefix-caching", *self._flags, *further)

    def _launch(self, adapters: list[tuple[str, str]], *flags: str, model: Path | None = None) -> PythonLaunch:
        tiny = self._folders.tiny
        ours = [*_FLAGS, *(_EXACT if self._exact else ()), *(_TINY if tiny else ()), *self._pool()]
        ours += _HYBRID if tiny and self._folders.recurrent else ()
        if adapters:
            modules = [f"{name}={path}" for name, path in adapters]
            ours += ["--enable-lora", "--max-lora-rank", "8", "--max-loras", str(len(adapters))]
            ours += ["--lora-modules", *modules]
        program = (self._python, "-m", "vllm.entrypoints.cli.main", "serve", str(model or self._folders.model))
        variables = {**_VARIABLES, **(_CPU_VARIABLES if tiny else {})}
        return PythonLaunch(program, (*ours, *flags), _START_SECONDS, variables)

    def _pool(self) -> tuple[str, ...]:
        """A pool that a few prompts fill; windowed layers have blocks of their own."""
        if not self._folders.tiny:
            return ()
        return ("--num-gpu-blocks-override", "32" if self._folders.window is None else "96")


def _attach(url: str, options: ServerOptions) -> VllmServer:
    return VllmServer(url, VllmSetup(only=options.adapters, admin=options.allow_admin))


VLLM = Engine(NAME, _attach, speaks_vllm, VllmInstallation, server="vLLM")
