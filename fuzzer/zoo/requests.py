"""What is asked of the engine, and what comes back: the same for both wire formats."""

from __future__ import annotations

from dataclasses import dataclass, field

from fuzzer.zoo.arithmetic import Floats

ScaledAdapter = tuple[str, float]
FIRST_WEIGHTS = "zoo"
"""The name of the weights that a server starts with."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What decides the answer besides the tokens: the weights, and the adapters by path, zero scales dropped."""

    weights: str = FIRST_WEIGHTS
    adapters: tuple[ScaledAdapter, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """The names under which a cache knows an environment: they may be reused, which the version tells apart."""

    adapter: str = ""
    version: int = 0
    salt: str = ""
    weights_version: int = 0


@dataclass(frozen=True, slots=True)
class Sampling:
    temperature: float = 0.0
    seed: int = 0
    bias: tuple[tuple[int, float], ...] = ()
    allowed: tuple[int, ...] = ()
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repeat_penalty: float = 1.0
    penalise_prompt: bool = False

    @property
    def named_tokens(self) -> tuple[int, ...]:
        return (*self.allowed, *(token for token, _ in self.bias))


@dataclass(frozen=True, slots=True)
class Request:
    tokens: tuple[int, ...]
    max_tokens: int
    environment: Environment = field(default_factory=Environment)
    identity: Identity = field(default_factory=Identity)
    sampling: Sampling = field(default_factory=Sampling)
    reads_cache: bool = True
    names_adapters: bool = True
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Generated:
    """One sampled token with the log-probabilities of the whole vocabulary before sampling."""

    token: int
    logprobs: Floats
