"""stalefuzz.toml: what a team runs in CI, in one file. Flags on the command line win over it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import msgspec

from fuzzer.calibration import Numerics
from fuzzer.cli_values import seconds
from fuzzer.errors import UsageError
from fuzzer.options import RunOptions, ServerOptions
from fuzzer.servers.profiles import Profile
from fuzzer.toml_file import decode_toml, line_of, read_text

Positive = Annotated[int, msgspec.Meta(ge=1)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]


class _Table(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A table whose keys are spelled like the flags."""


class RunTable(_Table, frozen=True):
    """``[run]``: what to do, whatever the target."""

    time: str | float | None = None
    """Of all cells together."""
    max_steps: Positive | None = None
    fail_fast: bool | None = None
    seed: NotNegative | None = None
    scenarios: list[str] | None = None
    redact: bool | None = None


class TargetTable(_Table, frozen=True):
    """``[[target]]``: one server to test."""

    name: str | None = None
    launch: str | None = None
    target: str | None = None
    binary: str | None = None
    engine: str | None = None
    reference: str | None = None
    model: str | None = None
    tiny: str | None = None
    adapters: list[str] | None = None
    numerics: Numerics | None = None
    flags: list[str] = []


class MatrixTable(_Table, frozen=True):
    """``[matrix]``: every target is run with every combination of these."""

    tiny: list[str] = []
    flags: list[list[str]] = []


class Configuration(_Table, frozen=True):
    """The whole file. Paths in it are relative to it."""

    schema: int = 1
    out: str | None = None
    baseline: str | None = None
    corpus: str | None = None
    run: RunTable = RunTable()
    target: list[TargetTable] = []
    matrix: MatrixTable = MatrixTable()
    profile: list[Profile] = []
    """Servers that stalefuzz does not know, for ``engine``."""


class Cell(msgspec.Struct, frozen=True):
    """One target with one combination of the matrix."""

    name: str
    servers: ServerOptions


NOTHING = Configuration()


def read_configuration(path: Path) -> Configuration:
    """The configuration in a file; raises UsageError naming line and key."""
    text = read_text(path, "--config")
    configuration = decode_toml(path, text, Configuration)
    if configuration.schema != 1:
        raise UsageError(f"{path} is of format {configuration.schema}; this stalefuzz reads format 1")
    time = configuration.run.time
    if time is not None and _seconds(time) is None:
        line = line_of(text, ["run", "time"])
        raise UsageError(f"{path}, line {line}: run.time: {time!r} is no duration; write 90s, 2m or 1h")
    return configuration


def with_configuration(options: RunOptions, given: frozenset[str], path: Path, file: Configuration) -> RunOptions:
    """Options with what the file says, except where the command line said it: ``given`` names those fields."""
    table = file.run
    wanted: dict[str, Any] = {
        "time_s": None if table.time is None else _seconds(table.time),
        "max_steps": table.max_steps,
        "fail_fast": table.fail_fast,
        "seed": table.seed,
        "scenarios": None if table.scenarios is None else tuple(table.scenarios),
        "redact": table.redact,
        "out": None if file.out is None else path.parent / file.out,
        "baseline": None if file.baseline is None else path.parent / file.baseline,
        "corpus": None if file.corpus is None else path.parent / file.corpus,
    }
    changes = {name: value for name, value in wanted.items() if value is not None and name not in given}
    return msgspec.structs.replace(options, **changes)


def cells(file: Configuration, path: Path, asked: ServerOptions) -> list[Cell]:
    """Every server to test; what the command line asks for replaces the same thing in all of them."""
    targets = file.target or [TargetTable()]
    found = [cell for target in targets for cell in _combinations(target, file.matrix, path)]
    asked = with_profiles(asked, file)
    over = {name: value for name, value in msgspec.structs.asdict(asked).items() if value not in (None, ())}
    found = [Cell(cell.name, msgspec.structs.replace(cell.servers, **over)) for cell in found]
    unique = {cell.servers: cell for cell in reversed(found)}
    return _named(list(reversed(unique.values())))


def with_profiles(asked: ServerOptions, file: Configuration) -> ServerOptions:
    """The options with the engines that the file describes."""
    return msgspec.structs.replace(asked, profiles=tuple(file.profile))


def _combinations(target: TargetTable, matrix: MatrixTable, path: Path) -> Iterator[Cell]:
    attached = target.target is not None
    tinies = [target.tiny] if attached or target.model or target.tiny or not matrix.tiny else matrix.tiny
    settings = [[]] if attached or not matrix.flags else matrix.flags
    for tiny, flags in product(tinies, settings):
        words = [target.name or tiny or target.target or target.launch or "target", *_words(flags)]
        yield Cell("-".join(words), _servers(target, tiny, [*target.flags, *flags], path))


def _servers(target: TargetTable, tiny: str | None, flags: list[str], path: Path) -> ServerOptions:
    adapters = target.adapters
    return ServerOptions(
        launch=target.launch,
        target=target.target,
        binary=None if target.binary is None else path.parent / target.binary,
        engine=target.engine,
        reference=target.reference,
        model=None if target.model is None else path.parent / target.model,
        tiny=tiny,
        adapters=() if adapters == ["none"] else tuple(_placed(path, one) for one in adapters) if adapters else None,
        numerics=target.numerics,
        server_flags=tuple(flags),
    )


def _placed(path: Path, adapter: str) -> str:
    beside = path.parent / adapter
    return str(beside) if beside.is_file() else adapter


def _words(flags: list[str]) -> list[str]:
    return [word.lstrip("-") for word in flags]


def _named(found: list[Cell]) -> list[Cell]:
    """Cells with names that are distinct and fit as folders."""
    named: list[Cell] = []
    taken: set[str] = set()
    for cell in found:
        base = "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in cell.name).strip("-.") or "target"
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        taken.add(name)
        named.append(Cell(name, cell.servers))
    return named


def _seconds(time: str | float) -> float | None:
    if isinstance(time, str):
        return seconds(time)
    return float(time) if time > 0 else None
