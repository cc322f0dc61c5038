"""The model and the adapters of a launched server: a tiny one that we write, or files of the user's."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from fuzzer.models.gguf_facts import adapter_facts, model_facts
from fuzzer.models.tiny import other_weights, tiny_model
from fuzzer.options import ServerOptions
from scenarios.capabilities import ModelShape

_WHOLE = 1 << 30
_SAMPLE = 16 << 20


class ModelFiles(msgspec.Struct, frozen=True):
    """Files on this machine, and names for them that mean the same on any other."""

    model: Path
    adapters: tuple[Path, ...]
    model_name: str
    """The recipe of a tiny model, or the hash of a file."""
    adapter_names: tuple[str, ...]
    tiny: str | None
    """The name of a tiny model."""
    shape: ModelShape

    @property
    def weights(self) -> tuple[Path, ...]:
        """The model's file, and one with other weights of it where there is one."""
        return (self.model, other_weights(self.tiny)) if self.tiny is not None else (self.model,)


def model_files(options: ServerOptions) -> ModelFiles:
    """Find or write the files; raises UsageError where one is missing or of another kind."""
    if options.model is not None:
        return _from_file(options.model, _paths(options.adapters or ()))
    return _tiny(options.tiny or "dense", options.adapters)


def _tiny(name: str, adapters: tuple[str, ...] | None) -> ModelFiles:
    model = tiny_model(name)
    if adapters is None:
        names = tuple(f"{model.recipe}:adapter={number}" for number in range(len(model.adapters)))
        return _tiny_files(name, model.adapters, names)
    paths = _paths(adapters)
    return _tiny_files(name, paths, tuple(content_name(path) for path in paths))


def _tiny_files(name: str, adapters: tuple[Path, ...], names: tuple[str, ...]) -> ModelFiles:
    model = tiny_model(name)
    return ModelFiles(model.path, adapters, model.recipe, names, name, ModelShape(model.window, model.recurrent))


def _from_file(path: Path, adapters: tuple[Path, ...]) -> ModelFiles:
    facts = model_facts(path)
    names = tuple(content_name(adapter) for adapter in adapters)
    return ModelFiles(path, adapters, content_name(path), names, None, ModelShape(facts.window, facts.recurrent))


def _paths(adapters: tuple[str, ...]) -> tuple[Path, ...]:
    paths = tuple(Path(adapter) for adapter in adapters)
    for path in paths:
        adapter_facts(path)
    return paths


def content_name(path: Path) -> str:
    """``sha256:...`` of a file's content; of size, head and tail where it is larger than 1 GiB."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= _WHOLE:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        digest = hashlib.sha256(str(size).encode() + file.read(_SAMPLE))
        file.seek(size - _SAMPLE)
        digest.update(file.read())
    return f"sha256-of-ends:{digest.hexdigest()}"
