"""llama.cpp as the rig sees it: the embedded llama-server or an executable, attached to or launched."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from threading import Lock
from weakref import WeakKeyDictionary

from fuzzer.errors import UsageError
from fuzzer.identity import program_in
from fuzzer.model_files import model_files
from fuzzer.options import ServerOptions
from fuzzer.servers.adapter_versions import version_of
from fuzzer.servers.engine import Engine
from fuzzer.servers.http import Connection
from fuzzer.servers.launched import LaunchedServer, launch_binary, launch_embedded
from fuzzer.servers.llama_flag_table import MODEL
from fuzzer.servers.llama_flags import LlamaFlags, parse_flags
from fuzzer.servers.llama_launch import (
    embedded_fields,
    of_versions,
    portable,
    reference_flags,
    sleeps,
    switches,
    target_flags,
)
from fuzzer.servers.llama_server import ENGINE as NAME
from fuzzer.servers.llama_server import LlamaServer
from fuzzer.servers.own_files import OwnFiles
from fuzzer.servers.probed_once import ProbedOnce
from fuzzer.servers.protocol import RequestRefused
from fuzzer.servers.wheel import engine_version
from reports.record import Settings

_OURS = ("restart",)
"""Operations on any server that we started."""


class LlamaInstallation:
    """The embedded server, or the executable that ``--binary`` names."""

    takes_settings = True
    starts_quickly = True

    def __init__(self, options: ServerOptions, exact: bool) -> None:
        if options.binary is not None and not options.binary.is_file():
            raise UsageError(f"--binary {options.binary}: there is no such file")
        self._options = options
        self._exact = exact
        self._probed, self._reference_probed = ProbedOnce(), ProbedOnce()
        self._files = model_files(options)
        self._launched: WeakKeyDictionary[LaunchedServer, LlamaFlags] = WeakKeyDictionary()
        self._lock = Lock()
        self.switches = switches(self._files.shape)
        self._folder = Path(gettempdir()) / f"stalefuzz-{token_hex(8)}"
        self._slot_files = self._folder / "slots"
        self._flags = self._flags_with(())

    @property
    def tiny_files(self) -> tuple[Path, ...]:
        """Model, other weights of it, and adapters of ours."""
        files = self._files
        named = zip(files.adapters, files.adapter_names, strict=True)
        adapters = [path for path, name in named if name.startswith("tiny:")]
        return (*files.weights, *adapters) if files.tiny else ()

    @property
    def program(self) -> str:
        """What is started, in a few words."""
        return str(self._options.binary or "the embedded llama-server")

    @property
    def build(self) -> str:
        """The wheel, whose version is the server's, or the executable as it is now."""
        return program_in(self._options.binary) if self._options.binary is not None else "xllamacpp"

    def target(self, further: tuple[str, ...] = (), setting: tuple[str, ...] = ()) -> LaunchedServer:
        """A server that caches, not yet started."""
        flags = parse_flags(further).with_defaults(self._flags_with(setting))
        return self._launch(flags, self._places(flags))

    def reference(self) -> LaunchedServer:
        """The same model and numerics with every cache off, not yet started."""
        return self._reference_with(0)

    @property
    def reference_of(self) -> Callable[[int], LaunchedServer] | None:
        """The reference with a version of the model's weights, not yet started; None for a model of the user's."""
        return self._reference_with if self._has_versions else None

    def connect(self, url: str) -> LlamaServer:
        """The adapter for a target that we started."""
        own, flags = self._started_at(url)
        return self._attached(url, self._probed, further=(*_OURS, *self._further(flags)), own=own)

    def connect_reference(self, url: str) -> LlamaServer:
        """The adapter for a reference that we started."""
        return self._attached(url, self._reference_probed, versioned=self._has_versions)

    def further(self, setting: tuple[str, ...]) -> tuple[str, ...]:
        """Kinds of operations that a target with these settings can do, beside those that any can."""
        return self._further(self._flags_with(setting))

    def settings(self, setting: tuple[str, ...] = ()) -> Settings:
        """What a finding records."""
        flags = self._flags_with(setting)
        return Settings(
            engine=NAME,
            version="",
            flags=portable(flags),
            model=self._files.model_name,
            adapters=list(self._files.adapter_names),
            numerics="",
            embedded=embedded_fields(flags),
        )

    def close(self) -> None:
        """Remove what servers saved, and files in places of their own."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _attached(
        self,
        url: str,
        known: ProbedOnce,
        *,
        further: tuple[str, ...] = (),
        own: OwnFiles | None = None,
        versioned: bool = False,
    ) -> LlamaServer:
        version = None if self._options.binary is not None else engine_version(self._options.wheel)
        return known.attached(
            lambda probed: LlamaServer(
                url,
                version=version,
                shape=self._files.shape,
                admin=True,
                further=further,
                probed=probed,
                own=own,
                versioned=versioned,
            )
        )

    @property
    def _has_versions(self) -> bool:
        """Whether the model is one of ours, of which there are other weights."""
        return self._files.tiny is not None and self._flags.get(MODEL) == str(self._files.model)

    def _further(self, flags: LlamaFlags) -> tuple[str, ...]:
        """What a server of ours can do by its flags: it loads its files again when it wakes."""
        if not sleeps(flags) or not self._has_versions:
            return ("sleep",) if sleeps(flags) else ()
        return ("sleep", "reload_weights", *(("reload",) if len(flags.adapters) > 1 else ()))

    def _places(self, flags: LlamaFlags) -> OwnFiles | None:
        """Where a server that can be told to load other versions has its files."""
        if "reload_weights" not in self._further(flags):
            return None
        adapters = [Path(adapter.path) for adapter in flags.adapters]
        return OwnFiles(self._folder / f"own-{token_hex(4)}", self._files.weights, adapters)

    def _reference_with(self, weights: int) -> LaunchedServer:
        flags = reference_flags(self._flags)
        if self._has_versions:
            flags = of_versions(flags, version_of(self._files.weights, weights) if weights else self._files.model)
        return self._launch(flags)

    def _started_at(self, url: str) -> tuple[OwnFiles | None, LlamaFlags]:
        with self._lock:
            launched = list(self._launched.items())
        # The port of one that has ended may be another's by now.
        there = ((server.launch.own, flags) for server, flags in launched if server.url == url and server.alive())
        return next(there, (None, LlamaFlags()))

    def _flags_with(self, setting: tuple[str, ...]) -> LlamaFlags:
        user = parse_flags(self._options.server_flags, keep_unknown=self._options.binary is not None)
        return target_flags(user.with_defaults(parse_flags(setting)), self._files, self._slot_files, exact=self._exact)

    def _launch(self, flags: LlamaFlags, own: OwnFiles | None = None) -> LaunchedServer:
        for folder in (self._folder, self._slot_files):
            folder.mkdir(mode=0o700, exist_ok=True)
        binary = self._options.binary
        if binary is not None:
            server = launch_binary(binary, flags.argv(), own=own)
        else:
            server = launch_embedded(flags.argv(), wheel=self._options.wheel, own=own)
        with self._lock:
            self._launched[server] = flags
        return server


def _attach(url: str, options: ServerOptions) -> LlamaServer:
    return LlamaServer(url, admin=options.allow_admin)


def _speaks(connection: Connection) -> bool:
    try:
        return "default_generation_settings" in connection.get_json("/props")
    except (RequestRefused, TypeError):
        return False


LLAMA_CPP = Engine(NAME, _attach, _speaks, LlamaInstallation, server="llama-server")
