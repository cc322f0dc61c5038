"""What engines that load Hugging Face folders have in common: their servers, and versions that stand side by side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from fuzzer.models.hf_folders import hf_folders
from fuzzer.models.hf_tiny import AdapterLayout
from fuzzer.options import ServerOptions
from fuzzer.servers.adapter_versions import all_versions, first_versions, version_of
from fuzzer.servers.launched import LaunchedServer
from fuzzer.servers.python_engine import PythonLaunch, interpreter, start_command, without
from reports.record import Settings


class FolderInstallation(ABC):
    """An engine on this machine, in our own environment or in that of the Python which ``variable`` names."""

    name: ClassVar[str]
    module: ClassVar[str]
    """The Python module that is there where the engine is."""
    variable: ClassVar[str]
    layout: ClassVar[AdapterLayout] = AdapterLayout.PEFT
    with_cache: ClassVar[tuple[str, ...]] = ()
    """Flags that ask for reuse, where the engine may have it off."""
    no_cache: ClassVar[tuple[str, ...]]
    """Flags under which nothing is reused."""
    caches: ClassVar[tuple[str, ...]] = ()
    """Flags of the user's that bring a cache of another tier, which the reference is started without."""

    takes_settings = False
    build = None
    starts_quickly = False

    def __init__(self, options: ServerOptions, exact: bool) -> None:
        self.switches = {" ".join(self.no_cache): self.no_cache}
        self._exact = exact
        self._folders = hf_folders(options, self.layout, self.name)
        self._flags = options.server_flags
        self._python = interpreter(self.name, self.module, self.variable)

    @property
    def tiny_files(self) -> tuple[Path, ...]:
        """Model and adapters of ours."""
        return self._folders.tiny_files

    def target(self, further: tuple[str, ...] = (), setting: tuple[str, ...] = ()) -> LaunchedServer:
        """A server that caches, not yet started."""
        return LaunchedServer(self._target(*further))

    def reference(self) -> LaunchedServer:
        """The same model with every cache off, each version of each adapter under a name of its own."""
        return self.reference_of(0)

    def reference_of(self, weights: int) -> LaunchedServer:
        """The reference with a version of the model's weights, not yet started."""
        folders = self._folders
        model = version_of(folders.weights or (folders.model,), weights)
        flags = without(self._flags, *self.caches)
        return LaunchedServer(self._launch(model, all_versions(folders.adapters), *flags, *self.no_cache))

    def further(self, setting: tuple[str, ...]) -> tuple[str, ...]:
        """None: it takes no settings."""
        return ()

    def settings(self, setting: tuple[str, ...] = ()) -> Settings:
        """What a finding records."""
        folders = self._folders
        start = start_command(self._target(), folders.variables)
        adapters = list(folders.adapter_names)
        return Settings(self.name, "", list(self._flags), folders.model_name, adapters, "", start=start)

    def close(self) -> None:  # noqa: B027 - an engine of its own may have something to remove
        """Nothing was written."""

    def _target(self, *further: str) -> PythonLaunch:
        folders = self._folders
        return self._launch(folders.model, first_versions(folders.adapters), *self.with_cache, *self._flags, *further)

    @abstractmethod
    def _launch(self, model: Path, adapters: list[tuple[str, str]], *flags: str) -> PythonLaunch:
        """What starts a server of this model with adapters, each a name and a folder."""
