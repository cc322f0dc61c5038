"""llama-server over its native routes: token-id prompts, per-request adapter scales, top-k logprobs, ``cache_n``.

Field names and their meaning are llama.cpp's own, tools/server/README.md of b11549.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fuzzer.errors import UnreachableError
from fuzzer.servers import sse
from fuzzer.servers.actions import carry_out
from fuzzer.servers.adapter_versions import VERSIONS, version_place
from fuzzer.servers.http import Connection, decode, kept_if_usable
from fuzzer.servers.llama_use import LlamaUse
from fuzzer.servers.own_files import OwnFiles
from fuzzer.servers.protocol import NO_VARIABLES, Action, Post, Request, RequestRefused, Until, Use, Watcher
from oracles.observations import Observation, Position, TokenLogprob, all_finite
from scenarios.capabilities import Capabilities, ModelShape
from scenarios.environment import AdapterScale
from scenarios.operations import (
    Erase,
    Operation,
    Other,
    Reload,
    ReloadWeights,
    Restore,
    Sampling,
    Save,
    SetScales,
    Sleep,
    Task,
)
from scenarios.prompts import TokenSpace

ENGINE = "llama.cpp"
_TOP_K = 50
"""16 kB for an answer of six tokens; the whole of a small vocabulary costs twice the time of the request itself."""
_SPECIAL_TOKENS = 4
"""Unknown, start, end and newline come first in the vocabularies that we write and in most others."""
_FIELDS = ["completion_probabilities", "timings", "id_slot"]
"""All that is read of an answer; the rest, the prompt and every setting again, is not sent then."""
_TASKS: dict[Task, Post] = {
    Task.TOKENIZE: Post("/tokenize", {"content": "a b c"}),
    Task.EMBEDDING: Post("/embedding", {"content": "a b c"}),
    Task.CHAT: Post(
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "a b c"}], "max_tokens": 2, "temperature": 0},
    ),
}
_ASLEEP = Until("/props", "is_sleeping")
"""It falls asleep when it is left alone, which asking for /props does not hinder."""
_WAKE = _TASKS[Task.TOKENIZE]
"""Any task loads model and adapters again, from where they were."""
_SLOW = ("sleep", "reload", "reload_weights")
_MALFORMED = 400
_ALWAYS = ("complete", "start", "await", "join", "abort", "evict")
_REQUESTS: dict[Sampling, dict[str, Any]] = {
    Sampling.PENALTIES: {"repeat_penalty": 1.5, "repeat_last_n": 64, "presence_penalty": 0.5},
    Sampling.GRAMMAR: {"grammar": "root ::= [a-m ]*"},
    Sampling.SEEDED: {"temperature": 1.0, "seed": 7},
}


class _Chosen(msgspec.Struct, frozen=True):
    id: int
    top_logprobs: list[TokenLogprob] = []


class _Timings(msgspec.Struct, frozen=True):
    prompt_n: int
    cache_n: int | None = None
    prompt_ms: float = 0.0
    predicted_ms: float = 0.0


class _Completion(msgspec.Struct, frozen=True):
    timings: _Timings
    completion_probabilities: list[_Chosen] = []
    id_slot: int | None = None


class _Chunk(msgspec.Struct, frozen=True):
    completion_probabilities: list[_Chosen] = []
    timings: _Timings | None = None
    id_slot: int | None = None
    error: Any = None


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


class _SlotFile(msgspec.Struct, frozen=True):
    n_saved: int | None = None
    n_restored: int | None = None
    n_erased: int | None = None

    @property
    def count(self) -> int | None:
        return next((n for n in (self.n_saved, self.n_restored, self.n_erased) if n is not None), None)


class Probed(msgspec.Struct, frozen=True):
    """What only trying tells, and what is the same for every server of one build, model and set of adapters."""

    vocabulary: int
    loaded: int
    """Adapter files."""
    tasks: tuple[Task, ...]
    administration: tuple[str, ...]
    """Kinds of operations that other users would notice."""


class LlamaServer:
    """A llama-server that answers at ``url``.

    ``version``, ``shape``, ``further`` (kinds of operations), ``probed`` and ``own`` (where the server has its files)
    are for what a launcher knows. ``admin`` allows what other users of the server would notice. ``versioned``: each
    version of each adapter is loaded, as on a reference.
    """

    engine = ENGINE
    path = "/completion"

    def __init__(
        self,
        url: str,
        *,
        version: str | None = None,
        shape: ModelShape | None = None,
        admin: bool = False,
        further: tuple[str, ...] = (),
        probed: Probed | None = None,
        own: OwnFiles | None = None,
        versioned: bool = False,
    ) -> None:
        self._own = own
        self._versions = VERSIONS if versioned else 1
        self.variables = own.variables if own is not None else NO_VARIABLES
        self._admin = admin
        self._further = further
        self._connection = Connection(url)
        self.url = url
        self._connection.reach()
        with kept_if_usable(self._connection):
            self._shake_hands(shape or ModelShape(), probed)
        self.version = version or self._props.build_info

    def _shake_hands(self, shape: ModelShape, probed: Probed | None) -> None:
        try:
            self._props = decode(self._connection.get("/props"), _Props)
            self.probed = probed or self._probe()
            self.capabilities = self._state_capabilities(shape)
        except RequestRefused as refusal:
            raise UnreachableError(f"{self.url} answers, but not as llama-server does: {refusal.reason}") from None

    def complete(self, request: Request) -> Observation:
        """Send one request and wait for the whole answer; tokens, top-k lists and counts as the server gives them."""
        answer = decode(self._connection.post(self.path, self.body(request)), _Completion)
        return _observation(
            [_position(chosen) for chosen in answer.completion_probabilities], answer.timings, answer.id_slot
        )

    def stream(self, request: Request, watcher: Watcher) -> Observation:
        """Send one request on a connection of its own and tell ``watcher`` each token as it comes."""
        positions: list[Position] = []
        for data in sse.events(self.url, self.path, self.streamed(request), watcher):
            chunk = decode(data, _Chunk)
            if chunk.error is not None:
                raise RequestRefused(f"error in the stream: {chunk.error}"[:300])
            for chosen in chunk.completion_probabilities:
                positions.append(_position(chosen))
                watcher.arrived(positions[-1])
            if chunk.timings is not None:
                return _observation(positions, chunk.timings, chunk.id_slot)
        raise RequestRefused("the stream ended without its last event")

    def perform(self, operation: Operation) -> int | None:
        """Do an operation that is no request; tokens saved, restored or erased, where that is what it does."""
        action = self.action(operation)
        if not action:
            raise RequestRefused(f"llama-server cannot do {operation}")
        content = carry_out(self._connection, action)
        return decode(content, _SlotFile).count if isinstance(operation, (Save, Restore, Erase)) else None

    def action(self, operation: Operation) -> Action:
        """What an operation that is no request is on the wire; empty for one that this server cannot do."""
        match operation:
            case SetScales(scales=scales):
                return [Post("/lora-adapters", self._lora(scales))]
            case Save(slot=slot, file=file):
                return [Post(f"/slots/{slot}?action=save", {"filename": f"stalefuzz-{file}.bin"})]
            case Restore(slot=slot, file=file):
                return [Post(f"/slots/{slot}?action=restore", {"filename": f"stalefuzz-{file}.bin"})]
            case Erase(slot=slot):
                return [Post(f"/slots/{slot}?action=erase", {})]
            case Other(task=task):
                return [_TASKS[task]]
            case Sleep():
                return [_ASLEEP, _WAKE]
            case ReloadWeights(version=version) if self._own is not None:
                return [_ASLEEP, self._own.weights(version), _WAKE]
            case Reload(adapter=adapter, version=version) if self._own is not None:
                return [_ASLEEP, self._own.adapter(adapter, version), _WAKE]
            case _:
                return []

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as."""
        body: dict[str, Any] = {
            "prompt": request.prompt,
            "n_predict": request.tokens,
            "temperature": 0,
            "n_probs": self.capabilities.top_logprobs,
            "ignore_eos": True,
            "response_fields": _FIELDS,
        }
        if request.scales is not None and self.capabilities.adapters:
            body["lora"] = self._lora(request.scales)
        # An explicit true would override --no-cache-prompt, so the field is left out where reuse is wanted.
        if not request.reuse:
            body["cache_prompt"] = False
        if request.slot is not None:
            body["id_slot"] = request.slot
        return body | self._sampling(request)

    def streamed(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as where its answer is to come token by token."""
        return self.body(request) | {"stream": True}

    def text_of(self, token: int) -> str | None:
        """The text of one token; None where the server does not tell."""
        try:
            return decode(self._connection.post("/detokenize", {"tokens": [token]}), _Text).content
        except RequestRefused:
            return None

    @property
    def use(self) -> Use:
        """Tokens computed, or who last had each slot, and the global scales."""
        return LlamaUse(self._connection, self.capabilities.adapters)

    def close(self) -> None:
        """Close the kept connection."""
        self._connection.close()

    def _lora(self, scales: tuple[AdapterScale, ...]) -> list[dict[str, Any]]:
        if self._versions == 1:
            return [{"id": scale.adapter, "scale": scale.scale} for scale in scales]
        on = {version_place(scale.adapter, scale.version): scale.scale for scale in scales}
        return [{"id": place, "scale": on.get(place, 0.0)} for place in range(self.probed.loaded)]

    def _sampling(self, request: Request) -> dict[str, Any]:
        if request.sampling is Sampling.BIAS:
            # Half of the vocabulary, so that some likely token is always among them.
            space = self.capabilities.space
            return {"logit_bias": [[token, -5.0] for token in range(space.first, space.first + space.count, 2)][:512]}
        return _REQUESTS.get(request.sampling, {})

    def _probe(self) -> Probed:
        adapters = len(decode(self._connection.get("/lora-adapters"), list[_Adapter]))
        return Probed(
            vocabulary=self._vocabulary(),
            loaded=adapters,
            tasks=tuple(task for task in Task if self._allows(task)),
            administration=tuple(self._admin_operations(adapters)),
        )

    def _state_capabilities(self, shape: ModelShape) -> Capabilities:
        vocabulary, adapters = self.probed.vocabulary, self.probed.loaded // self._versions
        return Capabilities(
            space=TokenSpace(_SPECIAL_TOKENS, max(1, vocabulary - _SPECIAL_TOKENS)),
            context=self._props.default_generation_settings.n_ctx,
            operations=(*_ALWAYS, *self.probed.administration, "other", *self._further),
            tasks=self.probed.tasks,
            samplings=tuple(Sampling),
            top_logprobs=min(vocabulary, _TOP_K),
            adapters=adapters,
            request_scales=adapters > 0,
            cached_counts=True,
            slow=tuple(kind for kind in self._further if kind in _SLOW),
            bypass=True,
            bypass_how="cache_prompt:false",
            pins=True,
            slots=self._props.total_slots,
            window=shape.window,
            recurrent=shape.recurrent,
            lasting=shape.lasting,
        )

    def _admin_operations(self, adapters: int) -> list[str]:
        if not self._admin:
            return []
        scales = ["set_scales"] if adapters else []
        try:
            self.perform(Erase(0))
        except RequestRefused:
            return scales
        return [*scales, "save", "restore", "erase"]

    def _allows(self, task: Task) -> bool:
        """Whether the route of a task is there, told from how it refuses an empty body.

        The task itself would leave state behind that no plan tells of: the checkpoints of a chat reach later prompts.
        """
        try:
            self._connection.post(_TASKS[task].path, {})
        except RequestRefused as refusal:
            return refusal.status == _MALFORMED
        return True

    def _vocabulary(self) -> int:
        models = self._connection.get_json("/v1/models")
        try:
            return int(models["data"][0]["meta"]["n_vocab"])
        except (KeyError, IndexError, TypeError, ValueError):
            raise RequestRefused("/v1/models does not tell the size of the vocabulary") from None


def _observation(positions: list[Position], timings: _Timings, slot: int | None) -> Observation:
    ms = round(timings.prompt_ms + timings.predicted_ms, 3)
    return Observation(positions, timings.cache_n, timings.prompt_n, slot, ms)


def _position(chosen: _Chosen) -> Position:
    if not all_finite(chosen.top_logprobs):
        raise RequestRefused("a log probability is not a finite number")
    return Position(chosen.id, chosen.top_logprobs)
