"""The llama-server flags that stalefuzz knows, in llama-server's own spelling.

Spellings and value rules are those of llama.cpp's ``common/arg.cpp`` (checked at b11549). ``field`` is where the value
lands in ``CommonParams``, llama.cpp's own settings structure, which the embedded server fills directly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

Value = bool | int | float | str

INT32_MAX = 2**31 - 1


class ValueKind(Protocol):
    """How the word after a flag is read; ``read`` raises ValueError, ``expects`` says what would have been right."""

    @property
    def expects(self) -> str: ...

    def read(self, text: str) -> Value: ...


@dataclass(frozen=True, slots=True)
class Integer:
    least: int = -1
    most: int = INT32_MAX
    barred: int | None = None
    words: tuple[tuple[str, int], ...] = ()

    @property
    def expects(self) -> str:
        named = "".join(f", or {word}" for word, _ in self.words)
        top = "" if self.most == INT32_MAX else f" to {self.most}"
        hole = "" if self.barred is None else f" but not {self.barred}"
        return f"an integer from {self.least}{top}{hole}{named}"

    def read(self, text: str) -> int:
        number = dict(self.words).get(text)
        if number is not None:
            return number
        number = int(text)
        if not self.least <= number <= self.most or number == self.barred:
            raise ValueError(text)
        return number


@dataclass(frozen=True, slots=True)
class Number:
    expects: str = field(default="a number", init=False)

    def read(self, text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            raise ValueError(text)
        return number


@dataclass(frozen=True, slots=True)
class Text:
    expects: str = field(default="a value", init=False)

    def read(self, text: str) -> str:
        if not text:
            raise ValueError(text)
        return text


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words; ``synonyms`` maps what llama-server also takes to the word it means."""

    words: tuple[str, ...]
    synonyms: tuple[tuple[str, str], ...] = ()

    @property
    def expects(self) -> str:
        return "one of " + ", ".join(self.words)

    def read(self, text: str) -> str:
        word = dict(self.synonyms).get(text, text)
        if word not in self.words:
            raise ValueError(text)
        return word


@dataclass(frozen=True, slots=True)
class Flag:
    """One setting. ``name`` is the spelling that is written out; a flag without ``kind`` is a switch."""

    name: str
    aliases: tuple[str, ...] = ()
    kind: ValueKind | None = None
    off: tuple[str, ...] = ()
    field: str = ""


ON_OFF_AUTO = Choice(
    ("on", "off", "auto"),
    (
        *((word, "on") for word in ("1", "true", "enabled")),
        *((word, "off") for word in ("0", "false", "disabled")),
        ("-1", "auto"),
    ),
)
CACHE_TYPE = Choice(("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"))
COUNT = Integer(least=0)
POSITIVE = Integer(least=1)
COUNT_OR_NO_LIMIT = Integer()
# llama-server refuses 0 slots; -1 lets it choose (four slots over one unified KV cache).
SLOTS = Integer(barred=0)
# The seed is an unsigned 32-bit number there; -1 means a random one.
SEED = Integer(most=2**32 - 1)
LAYERS = Integer(least=-2, words=(("auto", -1), ("all", -2)))

HOST = "--host"
PORT = "--port"
MODEL = "--model"
SLOT_SAVE_PATH = "--slot-save-path"
SLEEP_IDLE = "--sleep-idle-seconds"
LORA = "--lora"
LORA_SCALED = "--lora-scaled"

FLAGS = (
    Flag(MODEL, ("-m",), Text(), field="model.path"),
    Flag("--alias", ("-a",), Text(), field="model_alias"),
    Flag(HOST, (), Text(), field="hostnames"),
    Flag(PORT, (), Integer(least=0, most=65535), field="port"),
    Flag("--threads-http", (), COUNT_OR_NO_LIMIT, field="n_threads_http"),
    Flag("--verbosity", ("-lv", "--log-verbosity"), COUNT, field="verbosity"),
    # Batching and slots
    Flag("--parallel", ("-np",), SLOTS, field="n_parallel"),
    Flag("--ctx-size", ("-c",), COUNT, field="n_ctx"),
    Flag("--batch-size", ("-b",), POSITIVE, field="n_batch"),
    Flag("--ubatch-size", ("-ub",), POSITIVE, field="n_ubatch"),
    Flag("--cont-batching", ("-cb",), off=("--no-cont-batching", "-nocb"), field="cont_batching"),
    Flag("--threads", ("-t",), COUNT_OR_NO_LIMIT, field="cpuparams.n_threads"),
    Flag("--threads-batch", ("-tb",), COUNT_OR_NO_LIMIT, field="cpuparams_batch.n_threads"),
    Flag("--n-gpu-layers", ("-ngl", "--gpu-layers"), LAYERS, field="n_gpu_layers"),
    Flag("--warmup", off=("--no-warmup",), field="warmup"),
    # Numerics of attention and KV
    Flag("--flash-attn", ("-fa",), ON_OFF_AUTO, field="flash_attn_type"),
    Flag("--cache-type-k", ("-ctk",), CACHE_TYPE, field="cache_type_k"),
    Flag("--cache-type-v", ("-ctv",), CACHE_TYPE, field="cache_type_v"),
    # What is kept and reused
    Flag("--cache-prompt", off=("--no-cache-prompt",), field="cache_prompt"),
    Flag("--cache-reuse", (), COUNT, field="n_cache_reuse"),
    Flag("--cache-ram", ("-cram",), COUNT_OR_NO_LIMIT, field="cache_ram_mib"),
    Flag("--cache-idle-slots", off=("--no-cache-idle-slots",), field="cache_idle_slots"),
    Flag("--ctx-checkpoints", ("-ctxcp", "--swa-checkpoints"), COUNT, field="n_ctx_checkpoints"),
    Flag("--checkpoint-min-step", ("-cms",), COUNT, field="checkpoint_min_step"),
    Flag("--kv-unified", ("-kvu",), off=("--no-kv-unified", "-no-kvu"), field="kv_unified"),
    Flag("--swa-full", field="swa_full"),
    Flag("--context-shift", off=("--no-context-shift",), field="ctx_shift"),
    Flag(SLOT_SAVE_PATH, (), Text(), field="slot_save_path"),
    Flag("--slot-prompt-similarity", ("-sps",), Number(), field="slot_prompt_similarity"),
    Flag(SLEEP_IDLE, (), COUNT_OR_NO_LIMIT, field="sleep_idle_seconds"),
    # Adapters: these two add up, every other flag replaces its earlier value
    Flag(LORA, (), Text(), field="lora_adapters"),
    Flag(LORA_SCALED, (), Text(), field="lora_adapters"),
    Flag("--lora-init-without-apply", field="lora_init_without_apply"),
    # Endpoints and request defaults
    Flag("--slots", off=("--no-slots",), field="endpoint_slots"),
    Flag("--metrics", field="endpoint_metrics"),
    Flag("--props", field="endpoint_props"),
    Flag("--embedding", ("--embeddings",), field="embedding"),
    Flag("--n-predict", ("-n", "--predict"), Integer(least=-2), field="n_predict"),
    Flag("--keep", (), COUNT_OR_NO_LIMIT, field="n_keep"),
    Flag("--seed", ("-s",), SEED, field="sampling.seed"),
)

BY_NAME = {flag.name: flag for flag in FLAGS}
BY_SPELLING = {spelling: flag for flag in FLAGS for spelling in (flag.name, *flag.aliases, *flag.off)}
