"""The servers of one command: how they start or are reached, and how they are described."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from concurrent.futures import Executor, wait
from pathlib import Path
from queue import SimpleQueue
from urllib.parse import urlsplit

import msgspec

from fuzzer.calibration import Numerics
from fuzzer.company import Company, Sighting
from fuzzer.errors import UsageError
from fuzzer.identity import digest_of
from fuzzer.options import ServerOptions
from fuzzer.reference import Reference, ReferenceMode
from fuzzer.servers.access import Access, key_in_environment, permit
from fuzzer.servers.engine import Engine, Installation
from fuzzer.servers.launched import LaunchedServer
from fuzzer.servers.protocol import Server
from fuzzer.servers.registry import DEFAULT, LAUNCHABLE, engine_at, engine_called
from fuzzer.servers.shared import SharedServer
from fuzzer.target import Mishap, Target
from reports.record import OthersRecord, ReferenceRecord, Settings, TargetRecord

_TRIES = 5
"""Of a request to a server that others press too."""


class Rig:
    """Checks everything that can be checked without a server when it is made; raises UsageError."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        _check(options)
        self.numerics = options.numerics or _usual_numerics(options)
        self._engine = _engine(options)
        self._installation = None if options.target else self._install()
        _permit(options)
        self._target: Target | None = None
        self._reference: Reference | None = None
        self._reference_process: LaunchedServer | None = None
        self._weighted_references: list[LaunchedServer] = []
        self.notices: SimpleQueue[Mishap | Sighting] = SimpleQueue()
        """What befell the servers, and what others did to them."""

    @property
    def engine(self) -> str:
        """Name of the target's engine; empty until a server of the user's has been reached."""
        return self._engine.name if self._engine is not None else ""

    @property
    def switches(self) -> dict[str, tuple[str, ...]]:
        """Settings to try against a finding: words for a reader, flags for the server."""
        return self._installation.switches if self._installation is not None else {}

    @property
    def takes_settings(self) -> bool:
        """Whether the target can be started with the settings that scenarios name."""
        return self._installation is not None and self._installation.takes_settings

    def further(self, setting: tuple[str, ...]) -> tuple[str, ...]:
        """Kinds of operations that the target can do when it is started with the flags of ``setting``."""
        return self._installation.further(setting) if self._installation is not None else ()

    @property
    def measures_anew(self) -> bool:
        """Whether rounding is to be measured although it was before."""
        return self._options.recalibrate

    @property
    def tiny_files(self) -> tuple[Path, ...]:
        """The files of a tiny model of ours; none for a model or a server of the user's."""
        return self._installation.tiny_files if self._installation is not None else ()

    def in_words(self) -> str:
        """What is about to be started or reached."""
        if self._installation is None:
            return f"reaching {self._options.target}"
        return f"starting {self._installation.program} twice: target and reference"

    def start(self, pool: Executor) -> tuple[Target, Reference]:
        """Bring up target and reference side by side."""
        if self._installation is None:
            return self._attach(str(self._options.target))
        reference = pool.submit(self._launch_reference, self._installation)
        target = pool.submit(self._launch_target, self._installation)
        try:
            return target.result(), reference.result()
        finally:
            # Where one fails, the other has to be there before it can be stopped.
            wait([reference])
            wait([target])

    def start_fresh(self, further: tuple[str, ...] = (), setting: tuple[str, ...] = ()) -> Target:
        """Another target: ``further`` flags before all others, those of ``setting`` before our defaults only."""
        assert self._installation is not None
        process = _started(self._installation.target(further, setting))
        return Target(self._installation.connect, process=process, notice=self.notices.put)

    @property
    def can_start(self) -> bool:
        """Whether another target can be had whenever one is wanted."""
        return self._installation is not None and self._installation.starts_quickly

    def stop(self) -> None:
        """End what was started."""
        if self._target is not None:
            self._target.close()
        for process in (self._reference_process, *self._weighted_references):
            if process is not None:
                process.stop()
        if self._installation is not None:
            self._installation.close()

    def settings(self, setting: tuple[str, ...] = ()) -> Settings:
        """What a finding records about the server started with the flags of ``setting``."""
        version = self._target.server.version if self._target is not None else "unknown"
        if self._installation is None:
            return Settings(self.engine, version, flags=[], model="", adapters=[], numerics=self.numerics)
        settings = self._installation.settings(setting)
        return msgspec.structs.replace(settings, version=version, numerics=self.numerics)

    def identity(self, setting: tuple[str, ...] = ()) -> str | None:
        """Names the target, started with the flags of ``setting``, by all that decides how it rounds.

        None where that is not known: of a server of the user's, and of one that computes with what else is installed.
        """
        build = self._installation.build if self._installation is not None else None
        if build is None or not self._tells_version:
            return None
        return digest_of(self.settings(setting), build, self._options.server_flags)

    @property
    def _tells_version(self) -> bool:
        return self._target is not None and "unknown" not in self._target.server.version

    def target_record(self) -> TargetRecord:
        """What run.json says about the target."""
        assert self._target is not None
        return TargetRecord(
            engine=self._target.server.engine,
            version=self._target.server.version,
            capabilities=self._target.server.capabilities,
            url=self._options.target,
            launch=_command(self._installation.target()) if self._installation is not None else None,
        )

    def reference_record(self) -> ReferenceRecord:
        """What run.json says about the reference."""
        assert self._reference is not None
        return ReferenceRecord(
            mode=self._reference.mode,
            engine=self._reference.server.engine,
            version=self._reference.server.version,
            url=self._options.reference if self._reference.mode is ReferenceMode.URL else None,
            launch=_command(self._reference_process) if self._reference_process is not None else None,
        )

    def others_record(self) -> OthersRecord | None:
        """What run.json says about others on a server of the user's."""
        if self._target is None or self._target.ours:
            return None
        company = self._target.company
        seen = company.seen
        use, changed = company.use, dict(company.changed)
        return OthersRecord(use.told_by, seen.requests, seen.work, use.unit, changed, company.earlier)

    def _install(self) -> Installation:
        assert self._engine is not None
        assert self._engine.install is not None
        return self._engine.install(self._options, self.numerics is Numerics.EXACT)

    def _launch_target(self, installation: Installation) -> Target:
        process = _started(installation.target())
        self._target = Target(installation.connect, process=process, notice=self.notices.put)
        return self._target

    def _launch_reference(self, installation: Installation) -> Reference:
        self._reference_process = _started(installation.reference())
        server = installation.connect_reference(self._reference_process.url)
        with_weights = self._reference_with if installation.reference_of is not None else None
        self._reference = Reference(server, ReferenceMode.LAUNCHED, self._revive_reference, with_weights)
        return self._reference

    def _reference_with(self, weights: int) -> Server:
        assert self._installation is not None
        assert self._installation.reference_of is not None
        process = _started(self._installation.reference_of(weights))
        self._weighted_references.append(process)
        return self._installation.connect_reference(process.url)

    def _revive_reference(self) -> Server:
        assert self._installation is not None
        assert self._reference_process is not None
        ending = self._reference_process.ending()
        self.notices.put(Mishap(f"the reference stopped answering ({ending}) and is started again"))
        self._reference_process.restart()
        return self._installation.connect_reference(self._reference_process.url)

    def _attach(self, url: str) -> tuple[Target, Reference]:
        engine = self._engine = self._engine or engine_at(url, self._options.profiles)
        company = Company(self.notices.put)

        def watched(address: str) -> SharedServer:
            server = SharedServer(engine.attach(address, self._options), company)
            company.meet(server.use)
            return server

        self._target = Target(watched, url=url, notice=self.notices.put, company=company)
        self._reference = self._attach_reference(engine, watched)
        return self._target, self._reference

    def _attach_reference(self, engine: Engine, watched: Callable[[str], Server]) -> Reference:
        assert self._target is not None
        second = self._options.second_url
        if second is not None:
            return Reference(engine.attach(second, self._options), ReferenceMode.URL)
        if not self._target.server.capabilities.bypass:
            raise UsageError(
                f"{engine.name} at {self._options.target} has no way to skip its cache for one request, so it cannot "
                "be its own reference: start a second server with every cache off and give it with --reference URL"
            )
        return Reference(watched(str(self._options.target)), ReferenceMode.BYPASS)


def _started(server: LaunchedServer) -> LaunchedServer:
    server.start()
    return server


def _command(server: LaunchedServer) -> str:
    return shlex.join(server.command)


def _engine(options: ServerOptions) -> Engine | None:
    """The engine that was named, or the one that is launched by default; None where it is to be detected."""
    if options.target is not None:
        return engine_called(options.engine, options.profiles) if options.engine is not None else None
    return engine_called(options.launch) if options.launch is not None else DEFAULT


def _usual_numerics(options: ServerOptions) -> Numerics:
    """Exact for our own tiny models; a real model or a server of the user's computes as it is used to."""
    tiny = options.target is None and options.model is None
    return Numerics.EXACT if tiny else Numerics.DEFAULT


def _check(options: ServerOptions) -> None:
    if options.engine is not None:
        engine_called(options.engine, options.profiles)
    if options.target is not None:
        _check_attached(options)
        return
    for flag, given in (
        ("--allow-admin", options.allow_admin),
        ("--max-inflight", options.max_inflight),
        ("--rate", options.rate),
        ("--ca-file", options.ca_file),
    ):
        if given:
            raise UsageError(f"{flag} is about a server of yours, and goes with --target")
    if options.launch not in (None, *LAUNCHABLE):
        raise UsageError(f"stalefuzz cannot launch {options.launch!r}; it launches {', '.join(LAUNCHABLE)}")
    if options.reference not in (None,):
        raise UsageError("--reference goes with --target: a launched server gets a reference of its own")


def _check_attached(options: ServerOptions) -> None:
    _check_url("--target", str(options.target))
    if options.second_url is not None:
        _check_url("--reference", options.second_url)
    if options.ca_file is not None and not options.ca_file.is_file():
        raise UsageError(f"--ca-file {options.ca_file}: there is no such file")
    for flag, value in (("--launch", options.launch), ("--binary", options.binary), ("--model", options.model)):
        if value is not None:
            raise UsageError(f"{flag} starts a server and --target {options.target} is one already: give one of them")
    if options.server_flags:
        raise UsageError("flags after -- are for a launched server; --target was started with its own")


def _permit(options: ServerOptions) -> None:
    """Say how the user's servers are spoken to, keys to them alone."""
    if options.target is None:
        return
    access = Access(key_in_environment(), options.ca_file, options.rate, options.max_inflight, _TRIES)
    permit(options.target, access)
    if options.second_url is not None:
        permit(options.second_url, access)


def _check_url(flag: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise UsageError(f"{flag} {url} is no address of a server; write http://HOST:PORT")
    if parts.username or parts.password:
        raise UsageError(f"{flag}: a user name or a password in the URL would end up in reports; leave it out")
