"""Which files the reproducers look for: the run keeps copies of a tiny model beside its findings."""

from __future__ import annotations

import re

import msgspec

from reports.record import Settings

FOLDER = "models"
_TINY = re.compile(r"tiny:([a-z0-9-]+):")


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


def default_files(settings: Settings) -> list[DefaultFile]:
    """The model, then the adapters in order."""
    if not settings.model:
        return []
    tiny = tiny_name(settings)
    found = [DefaultFile("MODEL", f"{FOLDER}/{tiny}.gguf" if tiny else "", settings.model)]
    for number, recipe in enumerate(settings.adapters, 1):
        file = f"{FOLDER}/{tiny}-adapter-{number}.gguf" if _TINY.match(recipe) and tiny else ""
        found.append(DefaultFile(f"ADAPTER_{number}", file, recipe))
    return found
