"""SGLang over its own /generate: token-id prompts, top-k logprobs, adapters by name, tenant keys, cached counts.

Field names are SGLang's own, python/sglang/srt/managers/io_struct.py of 0.5.23. ``logprob_start_len`` is left out: 0
would switch prefix reuse off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

import msgspec

from fuzzer.errors import UnreachableError
from fuzzer.servers import sse
from fuzzer.servers.actions import carry_out
from fuzzer.servers.adapter_versions import (
    chosen,
    folder_after,
    folder_of,
    loads,
    version_name,
    version_of,
    version_path,
)
from fuzzer.servers.http import Connection, decode, kept_if_usable
from fuzzer.servers.metrics import counters
from fuzzer.servers.openai_server import adapter_named
from fuzzer.servers.protocol import Action, Post, Request, RequestRefused, Use, Watcher
from oracles.observations import Observation, Position, TokenLogprob, all_finite
from reports.reproduce.model_names import SERVER_GIVEN
from scenarios.capabilities import LASTING_IN_PYTHON, Capabilities
from scenarios.environment import adapter_letter
from scenarios.operations import Flush, Operation, Reload, ReloadWeights, Sampling, Sleep, Unload
from scenarios.prompts import TokenSpace

ENGINE = "sglang"
_TOP_K = 20
_SPECIAL_TOKENS = 4
_LARGE_VOCABULARY = 20_000
_CONTEXT = 2048
_DONE = b"[DONE]"
_SLEEP = (
    Post("/pause_generation", {"mode": "retract"}),
    Post("/release_memory_occupation", {}),
    Post("/resume_memory_occupation", {}),
    Post("/continue_generation", {}, always=True),
)
"""Release the memory and take it again; a scheduler that still runs requests would die of it."""
_FORGET_ONCE_IDLE = Post("/flush_cache?timeout=30", {}, remedies="Weights were updated")
"""A request that was aborted runs for one more step, and what is running forbids to forget what was cached."""
_REQUESTS = "sglang:num_requests_total"
_ALWAYS = ("complete", "start", "await", "join", "abort", "evict")
_SAMPLINGS: dict[Sampling, dict[str, Any]] = {
    Sampling.PENALTIES: {"repetition_penalty": 1.5, "presence_penalty": 0.5},
    Sampling.SEEDED: {"temperature": 1.0},
}

Entry = tuple[float | None, int, str | None]
"""Log probability, token id, text."""


class _Meta(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int | None = None
    output_token_logprobs: list[Entry] = []
    output_top_logprobs: list[list[Entry] | None] = []


class _Answer(msgspec.Struct, frozen=True):
    meta_info: _Meta | None = None
    error: Any = None


class _Adapter(msgspec.Struct, frozen=True):
    lora_name: str
    lora_id: str
    lora_path: str = ""


class _Info(msgspec.Struct, frozen=True):
    version: str
    lora_paths: list[_Adapter] | None = None
    page_size: int | None = None
    context_length: int | None = None
    max_total_num_tokens: int | None = None
    enable_cache_report: bool | None = None


class _Card(msgspec.Struct, frozen=True):
    id: str
    root: str | None = None


class _Models(msgspec.Struct, frozen=True):
    data: list[_Card]


class _Model(msgspec.Struct, frozen=True):
    vocab_size: int | None = None


class SglangSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What a launcher knows of its own server and may do to it."""

    vocabulary: int | None = None
    context: int | None = None
    window: int | None = None
    paths: tuple[str, ...] = ()
    """Adapter folders on the server's machine; version v of adapter n is path n + v."""
    versioned: bool = False
    """Each version of each adapter has a name of its own, as on a reference."""
    only: tuple[str, ...] | None = None
    """Names of the adapters to use; None: all that the server has."""
    variables: Mapping[str, str] = {}
    """What a reproducer calls the folders."""
    weights: tuple[str, ...] = ()
    """Folders of the model's weights on the server's machine, those it starts with first, for loading others."""
    admin: bool = False
    swaps: bool = False
    """Whether its adapters may be loaded over each other, from the folders that it tells."""
    sleeps: bool = False
    """Whether it gives back what it released; a server that was not started for it may not."""


class SglangServer:
    """An SGLang server that answers at ``url``."""

    engine = ENGINE
    path = "/generate"

    def __init__(self, url: str, setup: SglangSetup | None = None) -> None:
        self._setup = setup or SglangSetup()
        self.url = url.rstrip("/")
        self._connection = Connection(url)
        self._connection.reach()
        with kept_if_usable(self._connection):
            self._shake_hands(url)

    def _shake_hands(self, url: str) -> None:
        try:
            info = _info(self._connection)
            self.version = info.version
            loaded = {adapter.lora_name: adapter for adapter in info.lora_paths or []}
            self._adapters = [loaded[name] for name in chosen(list(loaded), self._setup.only)]
            self._paths = self._setup.paths or self._told()
            self.capabilities = self._state_capabilities(info)
        except RequestRefused as refusal:
            raise UnreachableError(f"{url} answers, but not as SGLang does: {refusal.reason}") from None

    def complete(self, request: Request) -> Observation:
        """Send one request and wait for the whole answer."""
        meta = _meta(self._connection.post(self.path, self.body(request)))
        return _observation(_positions(meta), meta)

    def stream(self, request: Request, watcher: Watcher) -> Observation:
        """Send one request on a connection of its own and tell ``watcher`` each token as it comes."""
        positions: list[Position] = []
        meta: _Meta | None = None
        for content in sse.events(self.url, self.path, self.streamed(request), watcher):
            if content == _DONE:
                return _observation(positions, meta or _Meta())
            meta = _meta(content)
            # Events hold the whole answer so far, or what is new of it: its length is told in either case.
            fresh = max(0, meta.completion_tokens - len(positions))
            for position in _positions(meta)[-fresh:] if fresh else []:
                positions.append(position)
                watcher.arrived(position)
        raise RequestRefused("the stream ended without its last event")

    def perform(self, operation: Operation) -> int | None:
        """Do an operation that is no request."""
        action = self.action(operation)
        if not action:
            raise RequestRefused(f"SGLang cannot do {operation}")
        carry_out(self._connection, action)
        return None

    def action(self, operation: Operation) -> Action:
        """What an operation is on the wire; an adapter that is loaded again is unloaded before."""
        match operation:
            case Flush():
                return [Post("/flush_cache", {})]
            case Sleep():
                return _SLEEP
            case Reload(adapter=adapter, version=version) | Unload(adapter=adapter, version=version) if self._paths:
                name, path = self._adapters[adapter].lora_name, version_path(self._paths, adapter, version)
                unload = Post("/unload_lora_adapter", {"lora_name": name})
                return [unload, Post("/load_lora_adapter", {"lora_name": name, "lora_path": path})]
            case ReloadWeights(version=version) if self._setup.weights:
                path = version_of(self._setup.weights, version)
                return [Post("/update_weights_from_disk", {"model_path": path}), _FORGET_ONCE_IDLE]
            case _:
                return []

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as."""
        sampling = {"temperature": 0, "max_new_tokens": request.tokens, "ignore_eos": True}
        body: dict[str, Any] = {
            "input_ids": request.prompt,
            "sampling_params": sampling | _SAMPLINGS.get(request.sampling, {}),
            "return_logprob": True,
            "top_logprobs_num": _TOP_K,
        }
        named = adapter_named(request)
        if named is not None:
            body["lora_path"] = version_name(*named) if self._setup.versioned else self._adapters[named[0]].lora_name
        # A key that nobody has used before makes the engine compute everything anew.
        key = self._key(request.salt) if request.reuse else f"stalefuzz-{token_hex(8)}"
        if key:
            body["extra_key"] = key
        return body

    def streamed(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as where its answer is to come token by token."""
        return self.body(request) | {"stream": True}

    def text_of(self, token: int) -> str | None:
        """Not told by this route."""
        return None

    @property
    def use(self) -> Use:
        """Requests counted where the server was started with --enable-metrics; adapters loaded."""
        return _SglangUse(self._connection, [adapter.lora_name for adapter in self._adapters], self._paths)

    def _told(self) -> Sequence[str]:
        """The folders that the server says its adapters came from, where it may load them again."""
        if not self._setup.swaps:
            return ()
        roots = _roots(self._connection)
        paths = [roots.get(adapter.lora_name, "") for adapter in self._adapters]
        return paths if all(paths) else ()

    @property
    def variables(self) -> Mapping[str, str]:
        """What a reproducer calls folders, and the ids of adapters, which each start of a server gives anew."""
        ids = {adapter.lora_id: f"{SERVER_GIVEN}{adapter.lora_name}" for adapter in self._adapters}
        return {**self._setup.variables, **ids}

    def close(self) -> None:
        """Close the kept connection."""
        self._connection.close()

    def _key(self, salt: str) -> str:
        """The tenant key for a plan's salt: a salt that is an adapter's letter becomes what the engine calls it."""
        ids = {adapter_letter(number): adapter.lora_id for number, adapter in enumerate(self._adapters)}
        return ids.get(salt, salt)

    def _state_capabilities(self, info: _Info) -> Capabilities:
        adapters = len(self._setup.paths) if self._setup.versioned else len(self._adapters)
        return Capabilities(
            space=self._space(),
            context=self._setup.context or info.context_length or info.max_total_num_tokens or _CONTEXT,
            operations=(*_ALWAYS, *self._admin_operations()),
            samplings=(Sampling.PLAIN, *_SAMPLINGS),
            top_logprobs=_TOP_K,
            adapters=adapters,
            adapter_names=adapters > 0,
            cached_counts=True,
            bypass=True,
            bypass_how="a fresh extra_key",
            salts=True,
            slots=8,
            block=info.page_size or 1,
            window=self._setup.window,
            lasting=LASTING_IN_PYTHON,
        )

    def _admin_operations(self) -> list[str]:
        if not self._setup.admin:
            return []
        sleep = ["sleep"] if self._setup.sleeps else []
        return ["flush", *sleep, *loads(self._paths, self._setup.weights)]

    def _space(self) -> TokenSpace:
        vocabulary = self._setup.vocabulary
        if vocabulary is None:
            vocabulary = decode(self._connection.get("/model_info"), _Model).vocab_size or _CONTEXT
        if vocabulary < _LARGE_VOCABULARY:
            return TokenSpace(_SPECIAL_TOKENS, max(1, vocabulary - _SPECIAL_TOKENS))
        # Real vocabularies keep special tokens at both ends.
        return TokenSpace(1000, vocabulary * 9 // 10 - 1000)


class _SglangUse(Use):
    """``adapters`` are the names of those that requests of ours ask for, ``paths`` the folders to load them from."""

    def __init__(self, connection: Connection, adapters: Sequence[str], paths: Sequence[str]) -> None:
        self._connection = connection
        self._adapters = adapters
        self._paths = paths
        self.told_by = "/metrics" if counters(connection, (_REQUESTS,)) else ""

    def environment(self) -> dict[str, str]:
        """The folder that each adapter was loaded from."""
        return {folder_of(name): root for name, root in _roots(self._connection).items() if name in self._adapters}

    def after(self, operation: Operation) -> dict[str, str]:
        """The folder of an adapter that is loaded again."""
        return folder_after(operation, self._adapters, self._paths)

    def work(self) -> int | None:
        """Requests since the server was started."""
        count = counters(self._connection, (_REQUESTS,)).get(_REQUESTS) if self.told_by else None
        return None if count is None else int(count)


def _roots(connection: Connection) -> dict[str, str]:
    """Where models and adapters were loaded from; /server_info tells the folders of the start for ever."""
    return {card.id: card.root or "" for card in decode(connection.get("/v1/models"), _Models).data}


def speaks_sglang(connection: Connection) -> bool:
    """Whether the server describes itself as SGLang does."""
    try:
        info = connection.get_json("/get_server_info")
        return isinstance(info, dict) and "internal_states" in info
    except RequestRefused:
        return False


def _info(connection: Connection) -> _Info:
    try:
        return decode(connection.get("/server_info"), _Info)
    except RequestRefused:
        return decode(connection.get("/get_server_info"), _Info)


def _meta(content: bytes) -> _Meta:
    answer = decode(content, _Answer)
    if answer.meta_info is None:
        raise RequestRefused(f"no answer: {answer.error}"[:300])
    return answer.meta_info


def _positions(meta: _Meta) -> list[Position]:
    lists = [*meta.output_top_logprobs, *([None] * len(meta.output_token_logprobs))]
    return [
        Position(token, _top(top or [])) for (_, token, _), top in zip(meta.output_token_logprobs, lists, strict=False)
    ]


def _top(entries: list[Entry]) -> list[TokenLogprob]:
    known = [TokenLogprob(token, value) for value, token, _ in entries if value is not None]
    if not all_finite(known):
        raise RequestRefused("a log probability is not a finite number")
    return sorted(known, key=lambda entry: -entry.logprob)


def _observation(positions: list[Position], meta: _Meta) -> Observation:
    cached = meta.cached_tokens or 0
    return Observation(positions, cached, max(0, meta.prompt_tokens - cached))
