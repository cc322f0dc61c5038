"""Tiny Hugging Face models by name: built in a moment, kept in the user's cache, the same bytes for everyone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from fuzzer.errors import UsageError
from fuzzer.models.hf_blueprint import HFBlueprint
from fuzzer.models.hf_chunked import hf_chunked
from fuzzer.models.hf_dense import hf_dense
from fuzzer.models.hf_granite import hf_granite
from fuzzer.models.hf_swa import hf_swa
from fuzzer.models.model_cache import cache_root, ensure

_BLUEPRINTS: Mapping[str, Callable[[], HFBlueprint]] = {
    "dense": hf_dense,
    "swa": hf_swa,
    "chunked": hf_chunked,
    "granite": hf_granite,
}
# A recipe names bytes: raise this with every change that alters them.
_FORMAT = 1
_ADAPTERS = 2


class AdapterLayout(StrEnum):
    """How an adapter's folder is laid out."""

    PEFT = "peft"
    MLX = "mlx"


@dataclass(frozen=True, slots=True)
class TinyFolder:
    """A model's folder with those of its adapters; ``recipe`` rebuilds the same bytes anywhere."""

    path: Path
    other_weights: Path
    """The same architecture with weights of another seed."""
    adapters: tuple[Path, ...]
    window: int | None
    recipe: str


def tiny_folder(name: str, layout: AdapterLayout, engine: str, *, cache: Path | None = None) -> TinyFolder:
    """The model of that name, built unless the cache holds it; raises UsageError for one that ``engine`` lacks."""
    known = [one for one in _BLUEPRINTS if _runs_on(one, engine)]
    if name not in known:
        raise UsageError(f"no tiny model for {engine} is called {name!r}; choose one of {', '.join(known)}")
    blueprint, recipe = _BLUEPRINTS[name](), f"tiny:{name}:seed=0:format=hf{_FORMAT}"
    entry = (cache or cache_root()) / hashlib.sha256(recipe.encode()).hexdigest()[:16]
    # Imported here: NumPy takes a third of a second, and a cached model needs none.
    from fuzzer.models import hf_files

    model, other_weights = entry / name, entry / f"{name}-other-weights"
    for seed, path in enumerate((model, other_weights)):
        ensure(path, hf_files.MODEL_FILES, partial(hf_files.write_model_folder, blueprint=blueprint, seed=seed))
    adapters = tuple(_adapter(entry, blueprint, layout, number) for number in range(1, _ADAPTERS + 1))
    return TinyFolder(model, other_weights, adapters, blueprint.window, recipe)


def _adapter(entry: Path, blueprint: HFBlueprint, layout: AdapterLayout, number: int) -> Path:
    from fuzzer.models import hf_files

    files, write = {
        AdapterLayout.PEFT: (hf_files.PEFT_FILES, hf_files.write_peft_adapter),
        AdapterLayout.MLX: (hf_files.MLX_FILES, hf_files.write_mlx_adapter),
    }[layout]
    path = entry / f"{layout}-adapter-{number}"
    ensure(path, files, lambda folder: write(folder, blueprint, 0, number))
    return path


def _runs_on(name: str, engine: str) -> bool:
    return engine in (_BLUEPRINTS[name]().engines or (engine,))
