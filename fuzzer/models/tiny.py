"""Tiny random models by name: built in a moment, kept in the user's cache, the same bytes for everyone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fuzzer.errors import UsageError
from fuzzer.models import vocabulary
from fuzzer.models.blueprint import Blueprint
from fuzzer.models.dense import dense
from fuzzer.models.jamba import jamba
from fuzzer.models.lfm2 import lfm2
from fuzzer.models.mamba import mamba
from fuzzer.models.model_cache import cache_root, ensure
from fuzzer.models.swa import swa

_BLUEPRINTS: Mapping[str, Callable[[], Blueprint]] = {
    "dense": dense,
    "swa": swa,
    "mamba": mamba,
    "jamba": jamba,
    "lfm2": lfm2,
}
NAMES = tuple(_BLUEPRINTS)

# A recipe names bytes: raise this with every change that alters them.
_FORMAT = 1
_ADAPTERS = 2
_OTHER_SEED = 1


@dataclass(frozen=True, slots=True)
class TinyModel:
    """A model on disk with its adapters; ``window`` is in tokens, ``recipe`` rebuilds the same bytes anywhere."""

    name: str
    path: Path
    adapters: tuple[Path, ...]
    vocabulary: int
    window: int | None
    recurrent: bool
    recipe: str


def tiny_model(name: str, *, seed: int = 0, cache: Path | None = None) -> TinyModel:
    """The model of that name, built unless the cache holds it; raises UsageError for an unknown name."""
    blueprint = _blueprint(name)
    recipe = f"tiny:{name}:seed={_checked(seed)}:format={_FORMAT}"
    entry = _entry(recipe, cache)
    files = _files(name)
    ensure(entry, files, lambda folder: _build(folder, files, blueprint, seed))
    return TinyModel(
        name=name,
        path=entry / files[0],
        adapters=tuple(entry / file for file in files[1:]),
        vocabulary=vocabulary.SIZE,
        window=blueprint.window,
        recurrent=blueprint.recurrent,
        recipe=recipe,
    )


def other_weights(name: str, *, cache: Path | None = None) -> Path:
    """A file of the same architecture as the model of that name, whose adapters fit it too, with other weights."""
    blueprint, file = _blueprint(name), f"{name}-other-weights.gguf"
    recipe = f"tiny:{name}:seed={_OTHER_SEED}:format={_FORMAT}:weights"
    entry = _entry(recipe, cache)
    ensure(entry, (file,), lambda folder: _build(folder, (file,), blueprint, _OTHER_SEED))
    return entry / file


def _entry(recipe: str, cache: Path | None) -> Path:
    return (cache or cache_root()) / hashlib.sha256(recipe.encode()).hexdigest()[:16]


def _blueprint(name: str) -> Blueprint:
    if name not in _BLUEPRINTS:
        raise UsageError(f"no tiny model is called {name!r}; choose one of {', '.join(NAMES)}")
    return _BLUEPRINTS[name]()


def _checked(seed: int) -> int:
    if seed < 0:
        raise UsageError(f"the seed of a tiny model cannot be {seed}; give 0 or more")
    return seed


def _files(name: str) -> tuple[str, ...]:
    return (f"{name}.gguf", *(f"{name}-adapter-{number}.gguf" for number in range(1, _ADAPTERS + 1)))


def _build(folder: Path, files: tuple[str, ...], blueprint: Blueprint, seed: int) -> None:
    # Imported here: NumPy and gguf take a third of a second, and a cached model needs neither.
    from fuzzer.models.gguf_models import write_model
    from fuzzer.models.lora import write_adapter

    model, *adapters = files
    write_model(folder / model, blueprint, seed)
    for number, adapter in enumerate(adapters, start=1):
        write_adapter(folder / adapter, blueprint, seed, number)
