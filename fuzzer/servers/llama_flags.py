"""Reads, merges and writes llama-server command lines, so that both launchers are told the same thing."""

from __future__ import annotations

import csv
import difflib
import io
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from fuzzer.errors import UsageError
from fuzzer.servers.llama_flag_table import BY_NAME, BY_SPELLING, HOST, LORA, LORA_SCALED, MODEL, Flag, Value

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class LoraFile:
    """An adapter as the command line gives it; its id on the server is its place in the list."""

    path: str
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class LlamaFlags:
    """A llama-server command line without its spelling.

    ``settings`` maps the canonical spelling of a flag to its value. ``unknown`` is kept as it was written and is empty
    unless the reader was told to keep what it does not know.
    """

    settings: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    adapters: tuple[LoraFile, ...] = ()
    unknown: tuple[str, ...] = ()

    def get(self, name: str) -> Value | None:
        """The value of a flag by its canonical spelling; None when it was not given."""
        return self.settings.get(name)

    def with_defaults(self, defaults: LlamaFlags) -> LlamaFlags:
        """These flags, and those of ``defaults`` that they leave open; adapters are taken from one side only."""
        settings = {**defaults.settings, **self.settings}
        adapters = self.adapters or defaults.adapters
        return LlamaFlags(MappingProxyType(settings), adapters, (*defaults.unknown, *self.unknown))

    def moved(self, model: str, adapters: Sequence[str]) -> LlamaFlags:
        """The same server with its files in other places."""
        moved = (replace(lora, path=path) for lora, path in zip(self.adapters, adapters, strict=True))
        return self.with_files(model, moved)

    def with_files(self, model: str, adapters: Iterable[LoraFile]) -> LlamaFlags:
        """The same server with this model and these adapters."""
        return replace(self, settings=MappingProxyType({**self.settings, MODEL: model}), adapters=tuple(adapters))

    def argv(self) -> tuple[str, ...]:
        """The words to type after ``llama-server``: what is known in one spelling, then the unknown as given."""
        known = (word for name, value in self.settings.items() for word in _words(BY_NAME[name], value))
        adapters = (word for adapter in self.adapters for word in _lora_words(adapter))
        return (*known, *adapters, *self.unknown)


def parse_flags(argv: Sequence[str], *, keep_unknown: bool = False) -> LlamaFlags:
    """Read a llama-server command line; a flag given twice has its last value, as there.

    Raises UsageError naming the flag that is unknown (unless ``keep_unknown``), lacks its value or has a bad one.
    """
    words = deque(argv)
    settings: dict[str, Value] = {}
    adapters: list[LoraFile] = []
    unknown: list[str] = []
    while words:
        word = words.popleft()
        spelling, value = _split(word)
        flag = BY_SPELLING.get(spelling)
        if flag is None:
            unknown.append(_kept(word, keep_unknown=keep_unknown))
        elif flag.kind is None:
            settings[flag.name] = _switch(flag, spelling, value)
        elif flag.name in (LORA, LORA_SCALED):
            adapters += _lora_files(flag, _value_text(spelling, value, words))
        else:
            settings[flag.name] = _read(flag, spelling, _value_text(spelling, value, words))
    return LlamaFlags(MappingProxyType(settings), tuple(adapters), tuple(unknown))


def _split(word: str) -> tuple[str, str | None]:
    spelling, equals, value = word.partition("=")
    return (spelling, value) if equals and word.startswith("--") else (word, None)


def _kept(word: str, *, keep_unknown: bool) -> str:
    if keep_unknown:
        return word
    if not word.startswith("-"):
        raise UsageError(f"llama-server takes no argument {word!r}: every word after -- is a flag or a flag's value.")
    near = difflib.get_close_matches(word, BY_SPELLING, n=1)
    advice = f"Did you mean {near[0]}?" if near else "With --binary PATH it is passed on to your own llama-server."
    raise UsageError(f"The embedded llama-server has no flag {word} that stalefuzz knows. {advice}")


def _switch(flag: Flag, spelling: str, value: str | None) -> bool:
    if value is not None:
        raise UsageError(f"{spelling} takes no value, but {value!r} was given: write {spelling} alone.")
    return spelling not in flag.off


def _value_text(spelling: str, value: str | None, rest: deque[str]) -> str:
    if value is not None:
        return value
    if not rest or rest[0] in BY_SPELLING:
        expected = BY_SPELLING[spelling].kind
        raise UsageError(f"{spelling} needs {expected.expects if expected else 'a value'} after it.")
    return rest.popleft()


def _read(flag: Flag, spelling: str, text: str) -> Value:
    assert flag.kind is not None
    try:
        value = flag.kind.read(text)
    except ValueError:
        raise UsageError(f"{spelling} takes {flag.kind.expects}, not {text!r}.") from None
    return _loopback(text) if flag.name == HOST else value


def _loopback(host: str) -> str:
    if host in (LOOPBACK, "localhost"):
        return LOOPBACK
    raise UsageError(f"--host {host} is refused: a server started by stalefuzz listens on {LOOPBACK} only.")


def _lora_files(flag: Flag, text: str) -> Iterable[LoraFile]:
    items = next(csv.reader([text]), [])
    if not all(items) or not items:
        raise UsageError(f"{flag.name} {text!r} names no file: give a path, or several with commas between.")
    return [LoraFile(item) if flag.name == LORA else _scaled(item) for item in items]


def _scaled(item: str) -> LoraFile:
    path, colon, scale = item.partition(":")
    try:
        number = float(scale)
    except ValueError:
        number = math.nan
    # llama-server splits at every colon, so that a path with one in it cannot be given there either.
    if not path or not colon or not math.isfinite(number):
        raise UsageError(f"{LORA_SCALED} takes FILE:SCALE with no other colon in it, not {item!r}.")
    return LoraFile(path, number)


def _words(flag: Flag, value: Value) -> tuple[str, ...]:
    if flag.kind is None:
        return (flag.name if value else flag.off[0],)
    return flag.name, str(value)


def _lora_words(adapter: LoraFile) -> tuple[str, str]:
    if adapter.scale == 1.0:
        return LORA, _csv_item(adapter.path)
    return LORA_SCALED, _csv_item(f"{adapter.path}:{adapter.scale!r}")


def _csv_item(text: str) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([text])
    return line.getvalue()


def missing_files(flags: LlamaFlags) -> Iterable[Path]:
    """The model and adapter files that the flags name and that are not there."""
    model = flags.get("--model")
    named = [*([str(model)] if model else []), *(adapter.path for adapter in flags.adapters)]
    return (path for path in map(Path, named) if not path.is_file())
