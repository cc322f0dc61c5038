"""How we start llama-server: what a target gets by default, what a reference is denied, what to try against a bug."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from fuzzer.cores import usable_cores
from fuzzer.model_files import ModelFiles
from fuzzer.servers.actions import PATIENCE_S
from fuzzer.servers.adapter_versions import all_versions
from fuzzer.servers.llama_flag_table import BY_NAME, SLEEP_IDLE, Value
from fuzzer.servers.llama_flags import LlamaFlags, LoraFile
from scenarios.capabilities import ModelShape

EXACT = LlamaFlags(
    MappingProxyType(
        {"--flash-attn": "off", "--cache-type-k": "f32", "--cache-type-v": "f32", "--threads": 1, "--threads-batch": 1}
    )
)
"""As bit-exact as llama.cpp gets: every sum in float32, in one order."""

_TARGET = LlamaFlags(
    MappingProxyType({"--parallel": 1, "--ctx-size": 4096, "--cache-ram": 64, "--warmup": False, "--metrics": True})
)
_NO_CACHE = LlamaFlags(
    MappingProxyType(
        {
            "--cache-ram": 0,
            "--cache-idle-slots": False,
            "--cache-reuse": 0,
            "--ctx-checkpoints": 0,
            "--parallel": 1,
            "--port": 0,
        }
    )
)


def switches(shape: ModelShape) -> dict[str, tuple[str, ...]]:
    """Settings that may make a bug go away, as a user would set them; those of checkpoints where a model needs them."""
    known: list[tuple[str, ...]] = [("--cache-ram", "0")]
    known += [("--swa-full",)] if shape.window is not None else []
    known += [("--ctx-checkpoints", "0")] if shape.window is not None or shape.recurrent else []
    return {" ".join(flags): flags for flags in (*known, ("--no-cache-prompt",))}


PLACE = frozenset({"--port", "--host", "--model", "--slot-save-path", "--alias"})
"""Where a server is and what files it uses: no part of what a finding says about its settings."""


def target_flags(user: LlamaFlags, files: ModelFiles, slot_files: Path, *, exact: bool) -> LlamaFlags:
    """The user's flags before our defaults."""
    saving = LlamaFlags(MappingProxyType({"--slot-save-path": str(slot_files)}))
    flags = user.with_defaults(_of_files(files)).with_defaults(saving).with_defaults(_TARGET)
    return flags.with_defaults(EXACT if exact else _half_of_the_cores())


def sleeps(flags: LlamaFlags) -> bool:
    """Whether a server with these flags falls asleep when it is left alone, as long as an operation waits for it."""
    return 0 < int(flags.get(SLEEP_IDLE) or 0) < PATIENCE_S


def reference_flags(target: LlamaFlags) -> LlamaFlags:
    """The same model and numerics with every cache off, and always awake."""
    awake = {name: value for name, value in target.settings.items() if name != SLEEP_IDLE}
    return _NO_CACHE.with_defaults(replace(target, settings=MappingProxyType(awake)))


def of_versions(flags: LlamaFlags, model: Path) -> LlamaFlags:
    """The flags with another file of the model, and each version of each adapter side by side."""
    adapters = all_versions([Path(adapter.path) for adapter in flags.adapters])
    return flags.with_files(str(model), (LoraFile(path) for _, path in adapters))


def portable(flags: LlamaFlags) -> list[str]:
    """The flags that a finding records: without paths, addresses and whatever we do not know."""
    kept = {name: value for name, value in flags.settings.items() if name not in PLACE}
    return list(LlamaFlags(MappingProxyType(kept)).argv())


def embedded_fields(flags: LlamaFlags) -> dict[str, tuple[str, Value]]:
    """The portable flags with the ``CommonParams`` field of each; values in the words of the command line."""
    kept = {name: value for name, value in flags.settings.items() if name not in PLACE}
    return {name: (BY_NAME[name].field, value) for name, value in kept.items()}


def _half_of_the_cores() -> LlamaFlags:
    """Target and reference work at the same time: threads of both on every core would wait for each other."""
    share = max(1, usable_cores() // 2)
    return LlamaFlags(MappingProxyType({"--threads": share, "--threads-batch": share}))


def _of_files(files: ModelFiles) -> LlamaFlags:
    adapters = tuple(LoraFile(str(path)) for path in files.adapters)
    return LlamaFlags(MappingProxyType({"--model": str(files.model)}), adapters)
