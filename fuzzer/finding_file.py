"""Reading finding files. They are untrusted: nothing in one chooses a program, a path or an address."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from fuzzer.errors import UsageError
from fuzzer.options import ServerOptions
from fuzzer.servers.llama_flags import parse_flags
from fuzzer.servers.llama_launch import portable
from fuzzer.servers.llama_server import ENGINE as LLAMA_CPP
from fuzzer.servers.registry import LAUNCHABLE
from fuzzer.servers.zoo_engine import ZOO
from reports.record import SCHEMA, FindingHeader, FindingRecord
from scenarios.plans import Plan
from scenarios.soundness import unsound

_ID = re.compile(r"[0-9a-f]+")
_TINY = re.compile(r"tiny:([a-z0-9-]+):")
_LARGEST = 64 << 20
USUAL_OUT = Path("stalefuzz-out")


def finding_paths(given: Path) -> list[Path]:
    """The finding files that a word on the command line means: itself, those in a folder, or one by its id.

    Raises UsageError for a folder without any.
    """
    if given.is_dir():
        folder = given / "findings" if (given / "findings").is_dir() else given
        found = sorted(folder.glob("*.json"))
        if not found:
            raise UsageError(f"there is no finding in {folder}")
        return found
    by_id = USUAL_OUT / "findings" / f"{given}.json"
    return [by_id] if not given.exists() and _ID.fullmatch(str(given)) and by_id.is_file() else [given]


def read_finding(path: Path) -> FindingRecord:
    """The finding in a file; raises UsageError with what is wrong with it."""
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path} is larger than any finding file")
        content = path.read_bytes()
        header = msgspec.json.decode(content, type=FindingHeader)
        if header.schema != SCHEMA:
            raise UsageError(f"{path} is of format {header.schema}; this stalefuzz reads format {SCHEMA}")
        finding = msgspec.json.decode(content, type=FindingRecord)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is not a finding file: {error}") from None
    _check(path, finding)
    return finding


def plan_of(finding: FindingRecord) -> Plan:
    """The plan that a finding replays."""
    return Plan(finding.plan, finding.prologue)


def options_for(finding: FindingRecord, asked: ServerOptions) -> ServerOptions:
    """How to start the server for a finding: its own settings, and before them what the user asks for."""
    if asked.target is not None:
        return asked
    asked = _with_engine(finding, asked)
    options = msgspec.structs.replace(asked, server_flags=_flags(finding, asked))
    if asked.model is not None or asked.tiny is not None or options.launch == ZOO.name:
        return options
    tiny = _TINY.match(finding.settings.model)
    if tiny is None:
        raise UsageError(f"finding {finding.id} was made on a model of the user's: give the file with --model")
    # A tiny model brings its adapters unless told not to, and loaded ones can decide an answer that names none.
    bare = asked.adapters is None and not finding.settings.adapters
    return msgspec.structs.replace(options, tiny=tiny[1], adapters=() if bare else asked.adapters)


def checked_id(path: Path, name: str) -> None:
    """Raise UsageError unless ``name`` can be a finding's id, and so a file's name."""
    if not _ID.fullmatch(name):
        raise UsageError(f"{path} names a finding whose id is not hexadecimal")


def _with_engine(finding: FindingRecord, asked: ServerOptions) -> ServerOptions:
    """The engine that the user asks for, else the finding's own, where that is one of ours."""
    known = finding.settings.engine in LAUNCHABLE and asked.binary is None
    if asked.launch is not None or not known:
        return asked
    return msgspec.structs.replace(asked, launch=finding.settings.engine)


def _flags(finding: FindingRecord, asked: ServerOptions) -> tuple[str, ...]:
    """The recorded flags behind the user's; of engines whose flags we cannot check, the user's alone."""
    own = finding.settings.engine == asked.launch or asked.launch is None
    if own and finding.settings.engine == ZOO.name:
        # Sizes and the name of a planted bug: there is no path and no program among them.
        return (*finding.settings.flags, *asked.server_flags)
    if not own or asked.launch not in (None, LLAMA_CPP):
        return asked.server_flags
    recorded = portable(parse_flags(finding.settings.flags, keep_unknown=True))
    flags = parse_flags(asked.server_flags, keep_unknown=asked.binary is not None)
    return tuple(flags.with_defaults(parse_flags(recorded)).argv())


def _check(path: Path, finding: FindingRecord) -> None:
    checked_id(path, finding.id)
    if not 1 <= finding.wrong <= len(finding.plan):
        raise UsageError(f"{path} is not a finding file: step {finding.wrong} of {len(finding.plan)} is marked wrong")
    fault = unsound(plan_of(finding))
    if fault is not None:
        raise UsageError(f"{path} is not a finding file: {fault}")
