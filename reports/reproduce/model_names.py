"""Which files the reproducers look for: the run keeps copies of a tiny model beside its findings."""

from __future__ import annotations

import re

import msgspec

from reports.record import Settings

FOLDER = "models"
_TINY = re.compile(r"tiny:([a-z0-9-]+):")
_LLAMA_CPP = "llama.cpp"
_LAYOUTS = {"mlx-lm": "mlx"}
"""Of the folder of an adapter, by engine; any other reads those of PEFT."""
OTHER_WEIGHTS = "OTHER_WEIGHTS"
SERVER_GIVEN = "ID of adapter "
"""In braces, with the adapter's name: what a server calls it from one start to the next."""


class DefaultFile(msgspec.Struct, frozen=True):
    """An environment variable of the scripts, and the file that it names unless it is set."""

    variable: str
    file: str
    """Relative to the output folder; empty where the reader has to say."""
    recipe: str


def tiny_name(settings: Settings) -> str | None:
    """The name of the tiny model that a finding was made on."""
    match = _TINY.match(settings.model)
    return match[1] if match else None


def default_files(settings: Settings, *, other_weights: bool = False) -> list[DefaultFile]:
    """The model, then the adapters in order; last ``other_weights`` of the model, where they are loaded."""
    if not settings.model:
        return []
    tiny = tiny_name(settings)
    suffix = ".gguf" if settings.engine == _LLAMA_CPP else ""
    found = [DefaultFile("MODEL", f"{FOLDER}/{tiny}{suffix}" if tiny else "", settings.model)]
    kind = tiny if settings.engine == _LLAMA_CPP else _LAYOUTS.get(settings.engine, "peft")
    for number, recipe in enumerate(settings.adapters, 1):
        file = f"{FOLDER}/{kind}-adapter-{number}{suffix}" if _TINY.match(recipe) and tiny else ""
        found.append(DefaultFile(f"ADAPTER_{number}", file, recipe))
    if other_weights:
        file = f"{FOLDER}/{tiny}-other-weights{suffix}" if tiny else ""
        found.append(DefaultFile(OTHER_WEIGHTS, file, "other weights"))
    return found
