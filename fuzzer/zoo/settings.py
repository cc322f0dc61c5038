"""How one zoo server is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from fuzzer.zoo.arithmetic import Numerics
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.model import ModelShape
from fuzzer.zoo.requests import FIRST_WEIGHTS


class Flavour(StrEnum):
    """Whose wire format and whose kind of cache."""

    LLAMA = "llama"
    VLLM = "vllm"


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes are small, so that short sequences fill, evict and cross boundaries; zero switches a tier off."""

    flavour: Flavour = Flavour.LLAMA
    shape: ModelShape = field(default_factory=ModelShape)
    weights: str = FIRST_WEIGHTS
    numerics: Numerics = Numerics.FLOAT32
    bug: Bug | None = None
    caching: bool = True
    rows: int = 1  # slots of the llama flavour, running requests of the vllm flavour
    chunk: int = 32
    step_tokens: int = 64
    ram_entries: int = 8
    checkpoints: int = 8
    blocks: int = 64
    block_size: int = 16
    host_blocks: int = 64
