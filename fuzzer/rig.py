"""The servers of one command: which files, which flags, how they start, how they are described."""

from __future__ import annotations

import shlex
import shutil
from concurrent.futures import Executor, wait
from pathlib import Path
from queue import SimpleQueue
from secrets import token_hex
from tempfile import gettempdir

import httpx

from fuzzer.calibration import Numerics
from fuzzer.errors import UsageError
from fuzzer.model_files import model_files
from fuzzer.options import ServerOptions
from fuzzer.reference import Reference, ReferenceMode
from fuzzer.servers.launched import LaunchedServer, launch_binary, launch_embedded
from fuzzer.servers.llama_flags import LlamaFlags, parse_flags
from fuzzer.servers.llama_launch import SWITCHES, embedded_fields, portable, reference_flags, target_flags
from fuzzer.servers.llama_server import ENGINE, LlamaServer
from fuzzer.servers.wheel import engine_version
from fuzzer.target import Target
from reports.record import ReferenceRecord, Settings, TargetRecord

_LAUNCHABLE = (ENGINE,)


class Rig:
    """Checks everything that can be checked without a server when it is made; raises UsageError."""

    engine = ENGINE

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        _check(options)
        self.numerics = options.numerics or _usual_numerics(options)
        self._files = None if options.target else model_files(options)
        self._slot_files = Path(gettempdir()) / f"stalefuzz-slots-{token_hex(8)}"
        self._flags = self._flags_with(())
        self._reference_flags = reference_flags(self._flags) if self._flags is not None else None
        self._target: Target | None = None
        self._reference: Reference | None = None
        self._reference_process: LaunchedServer | None = None
        self.notices: SimpleQueue[str] = SimpleQueue()
        """What befell the servers, a sentence each."""

    @property
    def switches(self) -> dict[str, tuple[str, ...]]:
        """Settings to try against a finding: words for a reader, flags for the server."""
        return SWITCHES if self._flags is not None else {}

    @property
    def tiny_files(self) -> tuple[Path, ...]:
        """The files of a tiny model of ours; none for a model or a server of the user's."""
        files = self._files
        if files is None or not files.tiny:
            return ()
        adapters = [
            path for path, name in zip(files.adapters, files.adapter_names, strict=True) if name.startswith("tiny:")
        ]
        return (files.model, *adapters)

    def in_words(self) -> str:
        """What is about to be started or reached."""
        if self._options.target:
            return f"reaching {self._options.target}"
        program = self._options.binary or "the embedded llama-server"
        return f"starting {program} twice: target and reference"

    def start(self, pool: Executor) -> tuple[Target, Reference]:
        """Bring up target and reference side by side."""
        self._slot_files.mkdir(mode=0o700)
        if self._options.target:
            self._target = Target(LlamaServer, url=self._options.target, notice=self.notices.put)
            self._reference = self._attach_reference()
            return self._target, self._reference
        reference = pool.submit(self._launch_reference)
        target = pool.submit(self._launch_target)
        try:
            return target.result(), reference.result()
        finally:
            # Where one fails, the other has to be there before it can be stopped.
            wait([reference])
            wait([target])

    def _launch_target(self) -> Target:
        assert self._flags is not None
        self._target = Target(self._connect, process=self._launch(self._flags), notice=self.notices.put)
        return self._target

    def start_fresh(self, further: tuple[str, ...] = (), setting: tuple[str, ...] = ()) -> Target:
        """Another target: ``further`` flags before all others, those of ``setting`` before our defaults only."""
        flags = self._flags_with(setting)
        assert flags is not None
        return Target(self._connect, process=self._launch(parse_flags(further).with_defaults(flags)))

    @property
    def can_start(self) -> bool:
        """Whether the target is ours to start."""
        return self._flags is not None

    def stop(self) -> None:
        """End what was started."""
        if self._target is not None:
            self._target.close()
        if self._reference_process is not None:
            self._reference_process.stop()
        shutil.rmtree(self._slot_files, ignore_errors=True)

    def settings(self, setting: tuple[str, ...] = ()) -> Settings:
        """What a finding records about a server started with the flags of ``setting``."""
        flags = self._flags_with(setting)
        return Settings(
            engine=ENGINE,
            version=self._server_version(),
            flags=portable(flags) if flags is not None else [],
            model=self._files.model_name if self._files is not None else "",
            adapters=list(self._files.adapter_names) if self._files is not None else [],
            numerics=self.numerics,
            embedded=embedded_fields(flags) if flags is not None else {},
        )

    def target_record(self) -> TargetRecord:
        """What run.json says about the target."""
        assert self._target is not None
        return TargetRecord(
            engine=ENGINE,
            version=self._server_version(),
            capabilities=self._target.server.capabilities,
            url=self._options.target,
            launch=self._command(self._flags),
        )

    def reference_record(self) -> ReferenceRecord:
        """What run.json says about the reference."""
        assert self._reference is not None
        return ReferenceRecord(
            mode=self._reference.mode,
            engine=self._reference.server.engine,
            version=self._reference.server.version,
            url=self._options.reference if self._reference.mode is ReferenceMode.URL else None,
            launch=self._command(self._reference_flags),
        )

    def _flags_with(self, setting: tuple[str, ...]) -> LlamaFlags | None:
        if self._files is None:
            return None
        user = parse_flags(self._options.server_flags, keep_unknown=self._options.binary is not None)
        user = user.with_defaults(parse_flags(setting))
        return target_flags(user, self._files, self._slot_files, exact=self.numerics is Numerics.EXACT)

    def _launch(self, flags: LlamaFlags) -> LaunchedServer:
        binary = self._options.binary
        server = launch_binary(binary, flags.argv()) if binary is not None else launch_embedded(flags.argv())
        server.start()
        return server

    def _launch_reference(self) -> Reference:
        assert self._reference_flags is not None
        self._reference_process = self._launch(self._reference_flags)
        server = self._connect(self._reference_process.url)
        self._reference = Reference(server, ReferenceMode.LAUNCHED, self._revive_reference)
        return self._reference

    def _revive_reference(self) -> LlamaServer:
        assert self._reference_process is not None
        self.notices.put(f"the reference stopped answering ({self._reference_process.ending()}) and is started again")
        self._reference_process.restart()
        return self._connect(self._reference_process.url)

    def _connect(self, url: str) -> LlamaServer:
        version = None if self._options.binary is not None else engine_version()
        shape = self._files.shape if self._files is not None else None
        return LlamaServer(url, version=version, shape=shape, admin=True)

    def _attach_reference(self) -> Reference:
        assert self._target is not None
        if self._options.reference in (None, "bypass"):
            return Reference(LlamaServer(self._target.url), ReferenceMode.BYPASS)
        return Reference(LlamaServer(str(self._options.reference)), ReferenceMode.URL)

    def _server_version(self) -> str:
        return self._target.server.version if self._target is not None else "unknown"

    def _command(self, flags: LlamaFlags | None) -> str | None:
        return None if flags is None else shlex.join(["llama-server", *flags.argv()])


def _usual_numerics(options: ServerOptions) -> Numerics:
    """Exact for our own tiny models; a real model or a server of the user's computes as it is used to."""
    tiny = options.target is None and options.model is None
    return Numerics.EXACT if tiny else Numerics.DEFAULT


def _check(options: ServerOptions) -> None:
    if options.engine not in (None, ENGINE):
        raise UsageError(f"there is no adapter for an engine called {options.engine!r}; known: {ENGINE}")
    if options.target is not None:
        _check_attached(options)
        return
    if options.launch not in (None, *_LAUNCHABLE):
        raise UsageError(f"stalefuzz cannot launch {options.launch!r}; it launches {', '.join(_LAUNCHABLE)}")
    if options.binary is not None:
        _check_executable(options.binary)
    if options.reference not in (None,):
        raise UsageError("--reference goes with --target: a launched server gets a reference of its own")


def _check_attached(options: ServerOptions) -> None:
    _check_url("--target", str(options.target))
    if options.reference not in (None, "bypass"):
        _check_url("--reference", str(options.reference))
    for flag, value in (("--launch", options.launch), ("--binary", options.binary), ("--model", options.model)):
        if value is not None:
            raise UsageError(f"{flag} starts a server and --target {options.target} is one already: give one of them")
    if options.server_flags:
        raise UsageError("flags after -- are for a launched server; --target was started with its own")


def _check_url(flag: str, url: str) -> None:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        raise UsageError(f"{flag} {url} is no address of a server; write http://HOST:PORT") from None
    if parsed.userinfo:
        raise UsageError(f"{flag}: a user name or a password in the URL would end up in reports; leave it out")
    if parsed.scheme not in ("http", "https") or not parsed.host or (parsed.port or 0) >= 2**16:
        raise UsageError(f"{flag} {url} is no address of a server; write http://HOST:PORT")


def _check_executable(path: Path) -> None:
    if not path.is_file():
        raise UsageError(f"--binary {path}: there is no such file")
