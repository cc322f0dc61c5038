"""TOML files of the user's, checked against a struct; errors name the line and the key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from fuzzer.errors import UsageError

T = TypeVar("T")
_PATH = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `([^`]+)`")
_STEP = re.compile(r"\[(\d+)\]|\.?([A-Za-z0-9_-]+)|\[\.\.\.\]")
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?")


def read_text(path: Path, flag: str) -> str:
    """The text of a file that ``flag`` names; raises UsageError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{flag} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{flag} {path} is not UTF-8 text") from None


def decode_toml(path: Path, text: str, kind: type[T]) -> T:
    """The content of a TOML text as ``kind``; raises UsageError."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise UsageError(_located(path, text, str(error))) from None


def _located(path: Path, text: str, error: str) -> str:
    match = _PATH.match(error)
    what, where = (match["what"], match["path"] or "") if match else (error, "")
    steps = [step for step in _STEP.findall(where) if any(step)]
    keys: list[str | int] = [int(number) if number else name for number, name in steps]
    unknown = _UNKNOWN.search(what)
    if unknown is not None:
        keys.append(unknown[1])
        what = "there is no such key"
    line = line_of(text, keys)
    key = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).lstrip(".")
    place = f"{path}, line {line}" if line else str(path)
    return f"{place}: {key}: {what}" if key else f"{place}: {what}"


def line_of(text: str, keys: list[str | int]) -> int | None:
    """The line, counted from 1, on which the value at ``keys`` is set; as near as plain reading finds it."""
    table: list[str | int] = []
    counts: dict[str, int] = {}
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.fullmatch(line)
        if header is not None:
            table = _table(header[1], header[2], counts)
            here = table
        else:
            name = line.partition("=")[0].strip().strip("\"'")
            here = [*table, *name.split(".")] if "=" in line else []
        depth = len(here)
        if here and here == keys[:depth] and (best is None or depth > best[0]):
            best = (depth, number)
    return best[1] if best else None


def _table(bracket: str, name: str, counts: dict[str, int]) -> list[str | int]:
    names: list[str | int] = [part.strip().strip("\"'") for part in name.split(".")]
    if bracket == "[[":
        counts[name] = counts.get(name, -1) + 1
        return [*names, counts[name]]
    return names
