"""llama-server over its native routes: token-id prompts, per-request adapter scales, top-k logprobs, ``cache_n``.

Field names and their meaning are llama.cpp's own, tools/server/README.md of b11549.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from fuzzer.servers.http import Connection, decode
from fuzzer.servers.protocol import Request, RequestRefused
from oracles.observations import Observation, Position, TokenLogprob
from scenarios.capabilities import Capabilities, ModelShape
from scenarios.prompts import TokenSpace

ENGINE = "llama.cpp"
_TOP_K = 50
"""16 kB for an answer of six tokens; the whole of a small vocabulary costs twice the time of the request itself."""
_SPECIAL_TOKENS = 4
"""Unknown, start, end and newline come first in the vocabularies that we write and in most others."""


class _Chosen(msgspec.Struct, frozen=True):
    id: int
    top_logprobs: list[TokenLogprob] = []


class _Timings(msgspec.Struct, frozen=True):
    prompt_n: int
    cache_n: int | None = None
    prompt_ms: float = 0.0
    predicted_ms: float = 0.0


class _Completion(msgspec.Struct, frozen=True):
    completion_probabilities: list[_Chosen]
    timings: _Timings
    id_slot: int | None = None


class _Text(msgspec.Struct, frozen=True):
    content: str


class _Default(msgspec.Struct, frozen=True):
    n_ctx: int


class _Props(msgspec.Struct, frozen=True):
    default_generation_settings: _Default
    total_slots: int
    build_info: str = "unknown"


class _Adapter(msgspec.Struct, frozen=True):
    id: int
    path: str
    scale: float


class LlamaServer:
    """A llama-server that answers at ``url``.

    ``version`` and ``shape`` are for what a launcher knows and the server does not tell.
    """

    engine = ENGINE
    path = "/completion"

    def __init__(self, url: str, *, version: str | None = None, shape: ModelShape | None = None) -> None:
        self._connection = Connection(url)
        self.url = url
        self._connection.reach()
        self._props = decode(self._connection.get("/props"), _Props)
        self.version = version or self._props.build_info
        self.capabilities = self._state_capabilities(shape or ModelShape())

    def complete(self, request: Request) -> Observation:
        """Send one request and wait for the whole answer; tokens, top-k lists and counts as the server gives them."""
        answer = decode(self._connection.post(self.path, self.body(request)), _Completion)
        positions = [Position(chosen.id, chosen.top_logprobs) for chosen in answer.completion_probabilities]
        _check_numbers(positions)
        timings = answer.timings
        ms = round(timings.prompt_ms + timings.predicted_ms, 3)
        return Observation(positions, timings.cache_n, timings.prompt_n, answer.id_slot, ms)

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as."""
        body: dict[str, Any] = {
            "prompt": request.prompt,
            "n_predict": request.tokens,
            "temperature": 0,
            "n_probs": self.capabilities.top_logprobs,
            "ignore_eos": True,
        }
        if request.scales:
            body["lora"] = [{"id": scale.adapter, "scale": scale.scale} for scale in request.scales]
        # An explicit true would override --no-cache-prompt, so the field is left out where reuse is wanted.
        if not request.reuse:
            body["cache_prompt"] = False
        return body

    def text_of(self, token: int) -> str | None:
        """The text of one token; None where the server does not tell."""
        try:
            return decode(self._connection.post("/detokenize", {"tokens": [token]}), _Text).content
        except RequestRefused:
            return None

    def adapter_paths(self) -> list[str]:
        """Paths of the adapters that the server has loaded, by id."""
        return [adapter.path for adapter in decode(self._connection.get("/lora-adapters"), list[_Adapter])]

    def close(self) -> None:
        """Close the kept connection."""
        self._connection.close()

    def _state_capabilities(self, shape: ModelShape) -> Capabilities:
        vocabulary = self._vocabulary()
        space = TokenSpace(_SPECIAL_TOKENS, max(1, vocabulary - _SPECIAL_TOKENS))
        return Capabilities(
            space=space,
            context=self._props.default_generation_settings.n_ctx,
            top_logprobs=min(vocabulary, _TOP_K),
            adapters=len(self.adapter_paths()),
            request_scales=True,
            cached_counts=True,
            bypass=True,
            slots=self._props.total_slots,
            window=shape.window,
            recurrent=shape.recurrent,
        )

    def _vocabulary(self) -> int:
        models = self._connection.get_json("/v1/models")
        try:
            return int(models["data"][0]["meta"]["n_vocab"])
        except (KeyError, IndexError, TypeError, ValueError):
            raise RequestRefused("/v1/models does not tell the size of the vocabulary") from None


def _check_numbers(positions: list[Position]) -> None:
    for position in positions:
        if not all(math.isfinite(entry.logprob) for entry in position.top):
            raise RequestRefused("a log probability is not a finite number")
