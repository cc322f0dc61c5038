"""llama.cpp as the rig sees it: the embedded llama-server or an executable, attached to or launched."""

from __future__ import annotations

import shutil
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from weakref import WeakKeyDictionary

from fuzzer.errors import UsageError
from fuzzer.identity import program_in
from fuzzer.model_files import model_files
from fuzzer.options import ServerOptions
from fuzzer.servers.engine import Engine
from fuzzer.servers.http import Connection
from fuzzer.servers.launched import LaunchedServer, launch_binary, launch_embedded
from fuzzer.servers.llama_flag_table import SLEEP_IDLE
from fuzzer.servers.llama_flags import LlamaFlags, parse_flags
from fuzzer.servers.llama_launch import embedded_fields, portable, reference_flags, switches, target_flags
from fuzzer.servers.llama_server import ENGINE as NAME
from fuzzer.servers.llama_server import LlamaServer
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
    reference_of = None

    def __init__(self, options: ServerOptions, exact: bool) -> None:
        if options.binary is not None and not options.binary.is_file():
            raise UsageError(f"--binary {options.binary}: there is no such file")
        self._options = options
        self._exact = exact
        self._probed = ProbedOnce()
        self._files = model_files(options)
        self._launched: WeakKeyDictionary[LaunchedServer, LlamaFlags] = WeakKeyDictionary()
        self.switches = switches(self._files.shape)
        self._slot_files = Path(gettempdir()) / f"stalefuzz-slots-{token_hex(8)}"
        self._reference_flags = reference_flags(self._flags_with(()))

    @property
    def tiny_files(self) -> tuple[Path, ...]:
        """Model and adapters of ours."""
        files = self._files
        named = zip(files.adapters, files.adapter_names, strict=True)
        adapters = [path for path, name in named if name.startswith("tiny:")]
        return (files.model, *adapters) if files.tiny else ()

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
        self._slot_files.mkdir(mode=0o700, exist_ok=True)
        return self._launch(parse_flags(further).with_defaults(self._flags_with(setting)))

    def reference(self) -> LaunchedServer:
        """The same model and numerics with every cache off, not yet started."""
        self._slot_files.mkdir(mode=0o700, exist_ok=True)
        return self._launch(self._reference_flags)

    def connect(self, url: str) -> LlamaServer:
        """The adapter for a server that we started."""
        version = None if self._options.binary is not None else engine_version(self._options.wheel)
        further = (*_OURS, *self._further_at(url))
        shape = self._files.shape
        return self._probed.attached(
            lambda probed: LlamaServer(url, version=version, shape=shape, admin=True, further=further, probed=probed)
        )

    connect_reference = connect

    def _further_at(self, url: str) -> tuple[str, ...]:
        """What a server of ours can do by the flags that it was started with."""
        idle = next((flags.get(SLEEP_IDLE) for server, flags in self._launched.items() if server.url == url), None)
        return ("sleep",) if idle is not None and int(idle) > 0 else ()

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
        """Remove the folder of saved slots."""
        shutil.rmtree(self._slot_files, ignore_errors=True)

    def _flags_with(self, setting: tuple[str, ...]) -> LlamaFlags:
        user = parse_flags(self._options.server_flags, keep_unknown=self._options.binary is not None)
        return target_flags(user.with_defaults(parse_flags(setting)), self._files, self._slot_files, exact=self._exact)

    def _launch(self, flags: LlamaFlags) -> LaunchedServer:
        binary = self._options.binary
        if binary is not None:
            server = launch_binary(binary, flags.argv())
        else:
            server = launch_embedded(flags.argv(), wheel=self._options.wheel)
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
