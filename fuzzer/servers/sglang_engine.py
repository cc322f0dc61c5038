"""SGLang as the rig sees it: attached to, or launched where ``sglang`` is importable."""

from __future__ import annotations

from pathlib import Path

from fuzzer.models.hf_folders import hf_folders
from fuzzer.models.hf_tiny import AdapterLayout
from fuzzer.options import ServerOptions
from fuzzer.servers.adapter_versions import all_versions, first_versions, version_of
from fuzzer.servers.engine import Engine
from fuzzer.servers.launched import LaunchedServer
from fuzzer.servers.python_engine import PythonLaunch, interpreter, start_command
from fuzzer.servers.sglang_server import ENGINE as NAME
from fuzzer.servers.sglang_server import SglangServer, SglangSetup, speaks_sglang
from reports.record import Settings

_START_SECONDS = 600.0
_VARIABLE = "STALEFUZZ_SGLANG_PYTHON"
_NO_CACHE: tuple[str, ...] = ("--disable-radix-cache",)
_FLAGS = ("--enable-cache-report", "--sleep-on-idle")
_TINY = ("--device", "cpu", "--attention-backend", "torch_native", "--max-running-requests", "16")
_POOL = 4096
_TINY_CONTEXT = 1024
_EXACT = ("--dtype", "float32")
_VARIABLES = {"SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": "1"}


class SglangInstallation:
    """``sglang.launch_server`` in our own environment, or in the one that STALEFUZZ_SGLANG_PYTHON names."""

    takes_settings = False
    build = None
    starts_quickly = False
    program = "sglang.launch_server"

    def __init__(self, options: ServerOptions, exact: bool) -> None:
        self.switches = {"--disable-radix-cache": _NO_CACHE}
        self._exact = exact
        self._folders = hf_folders(options, AdapterLayout.PEFT, NAME)
        self._flags = options.server_flags
        self._python = interpreter(NAME, "sglang", _VARIABLE)

    @property
    def tiny_files(self) -> tuple[Path, ...]:
        """Model and adapters of ours."""
        return self._folders.tiny_files

    def target(self, further: tuple[str, ...] = (), setting: tuple[str, ...] = ()) -> LaunchedServer:
        """A server that caches, not yet started."""
        return LaunchedServer(self._target(*further))

    def reference(self) -> LaunchedServer:
        """The same model without the radix cache, each version of each adapter under a name of its own."""
        return LaunchedServer(self._launch(all_versions(self._folders.adapters), *self._flags, *_NO_CACHE))

    def reference_of(self, weights: int) -> LaunchedServer:
        """The reference with another version of the model's weights, not yet started."""
        model = version_of(self._folders.weights, weights)
        launch = self._launch(all_versions(self._folders.adapters), *self._flags, *_NO_CACHE, model=model)
        return LaunchedServer(launch)

    def connect(self, url: str) -> SglangServer:
        """The adapter for a target that we started."""
        return SglangServer(url, self._setup(versioned=False))

    def connect_reference(self, url: str) -> SglangServer:
        """The adapter for a reference that we started."""
        return SglangServer(url, self._setup(versioned=True))

    def settings(self, setting: tuple[str, ...] = ()) -> Settings:
        """What a finding records."""
        folders = self._folders
        start = start_command(self._target(), folders.variables)
        adapters = list(folders.adapter_names)
        return Settings(NAME, "", list(self._flags), folders.model_name, adapters, "", start=start)

    def close(self) -> None:
        """Nothing was written."""

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

    def _target(self, *further: str) -> PythonLaunch:
        return self._launch(first_versions(self._folders.adapters), *self._flags, *further)

    def _launch(self, adapters: list[tuple[str, str]], *flags: str, model: Path | None = None) -> PythonLaunch:
        tiny = self._folders.tiny
        ours = ["--model-path", str(model or self._folders.model), *_FLAGS, *(_EXACT if self._exact else ())]
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
    return SglangServer(url, SglangSetup(only=options.adapters, admin=options.allow_admin))


SGLANG = Engine(NAME, _attach, speaks_sglang, SglangInstallation, server="SGLang")
