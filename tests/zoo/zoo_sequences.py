"""Short sequences of operations on a zoo server, and which of their answers differ from a plain recomputation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
from zoo_server import wait_for_running

from fuzzer.zoo.adapters import BASE_MODEL
from fuzzer.zoo.llama_server import ADAPTERS
from fuzzer.zoo.model import Network
from fuzzer.zoo.plain import recompute
from fuzzer.zoo.requests import Environment, Request, Sampling
from fuzzer.zoo.settings import Flavour, Settings
from fuzzer.zoo.text import most_likely

Json = dict[str, Any]

TOP = 8
VOCABULARY = 2048
GREEDY = Sampling()


def words(name: str, count: int) -> tuple[int, ...]:
    """Tokens that look random and are the same for the same name; a shorter count is a prefix."""
    seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
    return tuple(np.random.default_rng(seed).integers(0, VOCABULARY, size=count).tolist())


@dataclass(frozen=True, slots=True)
class Ask:
    """A request. ``adapters`` and ``weights`` must decide the answer; ``lawful`` tokens may be reused at most."""

    prompt: tuple[int, ...]
    count: int = 2
    adapters: tuple[tuple[str, float], ...] = ()
    weights: str = "zoo"
    model: str = BASE_MODEL
    named: bool = True
    salt: str = ""
    slot: int | None = None
    sampling: Sampling = GREEDY
    continues: int | None = None
    lawful: int | None = None


@dataclass(frozen=True, slots=True)
class Start:
    ask: Ask


@dataclass(frozen=True, slots=True)
class Join:
    started: int


@dataclass(frozen=True, slots=True)
class Abort:
    started: int


@dataclass(frozen=True, slots=True)
class Post:
    path: str
    body: object = None


@dataclass(frozen=True, slots=True)
class Evict:
    """Other prompts until nothing else is left on the device."""


Operation = Ask | Start | Join | Abort | Post | Evict


@dataclass(frozen=True, slots=True)
class Observed:
    tokens: list[int]
    top: list[dict[int, float]]
    reused: int


@dataclass(slots=True)
class Session:
    """One client's operations on one server; ``wrong`` collects those whose answers are not the honest ones."""

    client: httpx.Client
    settings: Settings
    network: Network = field(init=False)
    asked: dict[int, Ask] = field(default_factory=dict)
    responses: dict[int, httpx.Response] = field(default_factory=dict)
    answers: dict[int, list[int]] = field(default_factory=dict)
    wrong: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.network = Network(self.settings.shape)

    def run(self, operations: Sequence[Operation]) -> list[int]:
        with ExitStack() as stack:
            for number, operation in enumerate(operations):
                self._do(number, operation, stack)
        return self.wrong

    def _do(self, number: int, operation: Operation, stack: ExitStack) -> None:
        match operation:
            case Ask():
                self.asked[number] = operation
                self._judge(number, operation, self._ask(operation))
            case Start(ask):
                self._start(number, ask, stack)
            case Join(started):
                self._judge(started, self.asked[started], self._join(started))
            case Abort(started):
                self.responses.pop(started).close()
                wait_for_running(self.client, len(self.responses))
            case Post(path, body):
                self.client.post(path, json=body).raise_for_status()
            case Evict():
                for filler in range(3):
                    self._ask(Ask(words(f"filler {number} {filler}", 490)))

    def _ask(self, ask: Ask) -> Observed:
        reply = self.client.post(self._path, json=self._body(ask)).raise_for_status().json()
        return _observed([reply])

    def _start(self, number: int, ask: Ask, stack: ExitStack) -> None:
        body = {**self._body(ask), "stream": True, "stream_options": {"include_usage": True}}
        response = stack.enter_context(self.client.stream("POST", self._path, json=body))
        self.asked[number] = ask
        self.responses[number] = response.raise_for_status()

    def _join(self, started: int) -> Observed:
        lines = self.responses.pop(started).iter_lines()
        payloads = [line[6:] for line in lines if line.startswith("data: ") and "[DONE]" not in line]
        return _observed([json.loads(payload) for payload in payloads])

    def _judge(self, number: int, ask: Ask, observed: Observed) -> None:
        self.answers[number] = observed.tokens
        unlawful = ask.lawful is not None and observed.reused > ask.lawful
        if unlawful or not self._right(ask, observed):
            self.wrong.append(number)

    def _right(self, ask: Ask, observed: Observed) -> bool:
        environment = Environment(ask.weights, ask.adapters)
        request = Request(self._prompt(ask), ask.count, environment, sampling=ask.sampling)
        expected = recompute(self.settings, self.network, request)
        top = [dict(most_likely(generated.logprobs, TOP)) for generated in expected]
        same_top = all(honest.items() <= seen.items() for honest, seen in zip(top, observed.top, strict=True))
        return observed.tokens == [generated.token for generated in expected] and same_top

    def _prompt(self, ask: Ask) -> tuple[int, ...]:
        if ask.continues is None:
            return ask.prompt
        return (*self.asked[ask.continues].prompt, *self.answers[ask.continues], *ask.prompt)

    @property
    def _path(self) -> str:
        return "/completion" if self.settings.flavour is Flavour.LLAMA else "/v1/completions"

    def _body(self, ask: Ask) -> Json:
        tokens = list(self._prompt(ask))
        return _llama_body(ask, tokens) if self.settings.flavour is Flavour.LLAMA else _vllm_body(ask, tokens)


def _llama_body(ask: Ask, tokens: list[int]) -> Json:
    body: Json = {
        "prompt": tokens,
        "n_predict": ask.count,
        "temperature": 0,
        "n_probs": TOP,
        "return_tokens": True,
        "presence_penalty": ask.sampling.presence_penalty,
        "id_slot": -1 if ask.slot is None else ask.slot,
    }
    if ask.named:
        body["lora"] = [{"id": ADAPTERS.index(path), "scale": scale} for path, scale in ask.adapters]
    return body


def _vllm_body(ask: Ask, tokens: list[int]) -> Json:
    return {
        "model": ask.model,
        "prompt": tokens,
        "max_tokens": ask.count,
        "temperature": 0,
        "logprobs": TOP,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        "cache_salt": ask.salt,
        "allowed_token_ids": list(ask.sampling.allowed),
        "logit_bias": {str(token): bias for token, bias in ask.sampling.bias},
    }


def _observed(parts: list[Json]) -> Observed:
    return _observed_vllm(parts) if "choices" in parts[0] else _observed_llama(parts)


def _observed_llama(parts: list[Json]) -> Observed:
    positions = [position for part in parts for position in part.get("completion_probabilities") or []]
    top = [{entry["id"]: entry["logprob"] for entry in position["top_logprobs"]} for position in positions]
    return Observed([position["id"] for position in positions], top, parts[-1]["timings"]["cache_n"])


def _observed_vllm(parts: list[Json]) -> Observed:
    choices = [choice for part in parts for choice in part["choices"]]
    tops = [entry for choice in choices for entry in choice["logprobs"]["top_logprobs"]]
    top = [{int(name.removeprefix("token_id:")): value for name, value in entry.items()} for entry in tops]
    tokens = [token for choice in choices for token in choice["token_ids"]]
    return Observed(tokens, top, parts[-1]["usage"]["prompt_tokens_details"]["cached_tokens"])
