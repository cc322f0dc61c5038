"""What a run needs to know of a user's own GGUF before a server loads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fuzzer.errors import UsageError
from fuzzer.models.gguf_header import Array, NotGGUFError, Value, read_header

# Settings that only layers with a state have: selective state spaces, short convolutions, rwkv, kimi's delta attention.
_RECURRENT = ("ssm.", "shortconv.", "wkv.", "kda.")


@dataclass(frozen=True, slots=True)
class GGUFFacts:
    """A model or an adapter; vocabulary, context and window in tokens, all zero or None for an adapter."""

    architecture: str
    vocabulary: int
    context: int
    window: int | None
    recurrent: bool
    is_adapter: bool


def model_facts(path: Path) -> GGUFFacts:
    """Facts of a file that must be a model; raises UsageError."""
    facts = read_facts(path)
    if facts.is_adapter:
        raise UsageError(f"{path} is an adapter, not a model; pass it with --adapter")
    return facts


def adapter_facts(path: Path) -> GGUFFacts:
    """Facts of a file that must be an adapter; raises UsageError."""
    facts = read_facts(path)
    if not facts.is_adapter:
        raise UsageError(f"{path} is a model, not an adapter; pass it with --model")
    return facts


def read_facts(path: Path) -> GGUFFacts:
    """Facts of a model or an adapter; raises UsageError when the file is neither."""
    header = _header(path)
    kind = header.get("general.type", "model")
    if kind not in ("model", "adapter"):
        raise UsageError(f"{path} is a GGUF of type {kind!r}; give a model or an adapter")
    architecture = header.get("general.architecture")
    if not isinstance(architecture, str):
        raise UsageError(f"{path} does not name its architecture; give a GGUF that llama.cpp wrote")
    return _facts(header, architecture, is_adapter=kind == "adapter")


def _header(path: Path) -> Mapping[str, Value]:
    try:
        return read_header(path)
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {path}; check the path") from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except NotGGUFError as error:
        raise UsageError(f"{path} is not a usable GGUF file: {error}; convert or download it again") from error


def _facts(header: Mapping[str, Value], architecture: str, *, is_adapter: bool) -> GGUFFacts:
    return GGUFFacts(
        architecture=architecture,
        vocabulary=_count(header, "tokenizer.ggml.tokens") or _count(header, f"{architecture}.vocab_size"),
        context=_count(header, f"{architecture}.context_length"),
        window=_count(header, f"{architecture}.attention.sliding_window") or None,
        recurrent=any(key.removeprefix(f"{architecture}.").startswith(_RECURRENT) for key in header),
        is_adapter=is_adapter,
    )


def _count(header: Mapping[str, Value], key: str) -> int:
    value = header.get(key)
    if isinstance(value, Array):
        return value.length
    return value if isinstance(value, int) else 0
