"""The model folder and the adapter folders of a launched server that loads Hugging Face models."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from fuzzer.errors import UsageError
from fuzzer.models.hf_tiny import AdapterLayout, tiny_folder
from fuzzer.options import ServerOptions


class HFFolders(msgspec.Struct, frozen=True):
    """Folders on this machine, and names for them that mean the same on any other."""

    model: Path
    weights: tuple[Path, ...]
    """Folders of the model with weights that it can be told to load, its own first; none for a model of the user's."""
    adapters: tuple[Path, ...]
    model_name: str
    adapter_names: tuple[str, ...]
    tiny: bool
    vocabulary: int
    context: int
    window: int | None
    recurrent: bool = False
    """Some of its layers keep one state in place of a past."""

    @property
    def variables(self) -> dict[str, str]:
        """What a reproducer calls each folder."""
        others = {str(path): "OTHER_WEIGHTS" for path in self.weights[1:]}
        adapters = {str(path): f"ADAPTER_{number}" for number, path in enumerate(self.adapters, 1)}
        return {**others, **adapters, str(self.model): "MODEL"}

    @property
    def tiny_files(self) -> tuple[Path, ...]:
        """Folders of ours, which reproducers may bring along."""
        adapters = [
            path for path, name in zip(self.adapters, self.adapter_names, strict=True) if name.startswith("tiny:")
        ]
        return (*self.weights, *adapters) if self.tiny else ()


def hf_folders(options: ServerOptions, layout: AdapterLayout, engine: str) -> HFFolders:
    """Find or write the folders; raises UsageError where one is missing or of another kind."""
    if options.binary is not None:
        raise UsageError(
            f"--binary is a llama-server executable and --launch {engine} another engine: give one of them"
        )
    if options.model is not None:
        return _described(options.model, (), _adapters(options.adapters or (), layout), None)
    model = tiny_folder(options.tiny or "dense", layout, engine)
    weights = (model.path, model.other_weights)
    if options.adapters is None:
        names = tuple(f"{model.recipe}:adapter={number}" for number in range(len(model.adapters)))
        return _described(model.path, weights, model.adapters, model.recipe, names)
    return _described(model.path, weights, _adapters(options.adapters, layout), model.recipe)


def _described(
    model: Path,
    weights: tuple[Path, ...],
    adapters: tuple[Path, ...],
    recipe: str | None,
    names: tuple[str, ...] | None = None,
) -> HFFolders:
    config = _config(model)
    text = config.get("text_config", config)
    window = text.get("sliding_window") or text.get("attention_chunk_size")
    return HFFolders(
        model=model,
        weights=weights,
        adapters=adapters,
        model_name=recipe or _content_name(model / "config.json"),
        adapter_names=names or tuple(_content_name(path / "adapter_config.json") for path in adapters),
        tiny=recipe is not None,
        vocabulary=int(text.get("vocab_size", config.get("vocab_size", 0))),
        context=int(text.get("max_position_embeddings", 2048)),
        window=window if isinstance(window, int) and text.get("use_sliding_window", True) else None,
        recurrent="mamba" in (text.get("layer_types") or ()),
    )


def _config(model: Path) -> dict[str, Any]:
    path = model / "config.json"
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"{model} is no folder of a Hugging Face model: it has no config.json") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path} is no model configuration: it holds no JSON object")
    return content


def _adapters(names: tuple[str, ...], layout: AdapterLayout) -> tuple[Path, ...]:
    paths = tuple(Path(name).absolute() for name in names)
    for path in paths:
        if not (path / "adapter_config.json").is_file():
            raise UsageError(f"{path} is no adapter's folder in the {layout} layout: it has no adapter_config.json")
    return paths


def _content_name(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
