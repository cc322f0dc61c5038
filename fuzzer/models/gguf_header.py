"""The key-value header of a GGUF file, read without its tensors and without decoding its token list.

The gguf package's own reader decodes every token: seconds for the vocabulary of a real model.
Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_LENGTH = struct.Struct("<Q")
_FIRST_KEY = 24


class NotGGUFError(ValueError):
    """The bytes are no GGUF file that we can read; ``str()`` says why."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array in the header, of which only the length is kept."""

    length: int


Value = int | float | str | Array


def read_header(path: Path) -> Mapping[str, Value]:
    """All keys and values; raises OSError or NotGGUFError."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise NotGGUFError("it does not begin with the letters GGUF")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _parse(content)


def _parse(content: mmap.mmap) -> dict[str, Value]:
    try:
        version, _tensors, keys = struct.unpack_from("<IQQ", content, len(_MAGIC))
        if version not in _VERSIONS:
            raise NotGGUFError(f"its format version is {version}, not 2 or 3")
        cursor = _Cursor(content, _FIRST_KEY)
        return {cursor.string(): cursor.value() for _ in range(keys)}
    except (struct.error, UnicodeDecodeError) as error:
        raise NotGGUFError("its header is cut off or damaged") from error


class _Cursor:
    """A place in the file; each read moves it on, and struct.error says that the file ends before."""

    def __init__(self, content: mmap.mmap, offset: int) -> None:
        self._content = content
        self._offset = offset

    def string(self) -> str:
        start = self._advance(_LENGTH.size)
        (length,) = _LENGTH.unpack_from(self._content, start)
        start = self._advance(length)
        return self._content[start : self._offset].decode()

    def value(self) -> Value:
        kind = self._scalar("<I")
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self._array()
        number: float = self._scalar(_format(kind))
        return number

    def _scalar(self, form: str) -> Any:
        start = self._advance(struct.calcsize(form))
        (value,) = struct.unpack_from(form, self._content, start)
        return value

    def _array(self) -> Array:
        kind, length = self._scalar("<I"), self._scalar("<Q")
        if kind == _STRING:
            self._skip_strings(length)
        else:
            self._advance(length * struct.calcsize(_format(kind)))
        return Array(length)

    def _skip_strings(self, count: int) -> None:
        # One loop with no calls of ours: a vocabulary has hundreds of thousands of strings.
        content, offset, unpack, size = self._content, self._offset, _LENGTH.unpack_from, _LENGTH.size
        for _ in range(count):
            offset += size + unpack(content, offset)[0]
            if offset > len(content):
                break
        self._advance(offset - self._offset)

    def _advance(self, count: int) -> int:
        start = self._offset
        if start + count > len(self._content):
            raise struct.error("past the end")
        self._offset = start + count
        return start


def _format(kind: int) -> str:
    if kind not in _SCALARS:
        raise struct.error(f"unknown type {kind}")
    return _SCALARS[kind]
