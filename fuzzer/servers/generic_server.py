"""Any server with an OpenAI-style completion route, told apart by a profile; what that leaves open is asked."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import Any

import msgspec

from fuzzer.errors import UnreachableError
from fuzzer.servers.http import Connection, decode, kept_if_usable
from fuzzer.servers.openai_server import OpenAIServer, adapter_named
from fuzzer.servers.openai_wire import Completion, prompt_fields, with_cached
from fuzzer.servers.probed_texts import probed_texts
from fuzzer.servers.profiles import CACHED, FRESH, Profile
from fuzzer.servers.protocol import Action, Post, Request, RequestRefused
from scenarios.capabilities import Capabilities
from scenarios.operations import Flush, Operation, Sampling
from scenarios.prompts import TokenSpace

_CONTEXTS = (2048, 1536, 1024, 512, 256)
"""Tokens of the longest request by preference; the longest that the server takes whole is used."""
_ROOM = 64
"""Tokens of a context left for the answer and for what a chat template adds."""
_LOWEST_IDS = TokenSpace(1000, 1000)
"""Ids that every vocabulary of a real model has, and that are text there: special tokens stand at either end."""
_LENGTHS = (80, 150, 201, 250)
"""Tokens of prompts asked twice: what is cached of them has no common divisor but the size of a block."""
_COUNTED: tuple[dict[str, Any], ...] = ({"logprobs": 20}, {"logprobs": 5})
_FLAGGED: tuple[dict[str, Any], ...] = (
    {"logprobs": True, "top_logprobs": 20},
    {"logprobs": True, "top_logprobs": 10},
    {"logprobs": True, "top_logprobs": 5},
)
"""Spellings of the wish for logprobs by preference, of completions and of chats; answers show which are understood."""
_SAMPLINGS: dict[Sampling, dict[str, Any]] = {Sampling.SEEDED: {"temperature": 1.0, "seed": 7}}


class _Model(msgspec.Struct, frozen=True):
    id: str
    owned_by: str = ""


class _Models(msgspec.Struct, frozen=True):
    data: list[_Model] = []


class GenericServer(OpenAIServer):
    """A server that ``profile`` describes. ``adapters`` are names of models that are the first one's adapters."""

    def __init__(self, url: str, profile: Profile, *, adapters: Sequence[str] = (), admin: bool = False) -> None:
        super().__init__(url)
        self.engine = profile.name
        self.path = profile.route
        self._profile = profile
        takes_adapters = profile.adapter_models or profile.adapter_field is not None
        self._adapters = tuple(adapters) if takes_adapters else ()
        self._logprobs: dict[str, Any] = {}
        with kept_if_usable(self._connection):
            self._shake_hands(admin=admin)

    def _shake_hands(self, *, admin: bool) -> None:
        try:
            self._base = _base_model(self._connection, self._adapters if self._profile.adapter_models else ())
            self.capabilities = self._probed(admin=admin)
        except RequestRefused as refusal:
            raise UnreachableError(f"{self.url} has no usable route {self.path}: {refusal.reason}") from None

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as."""
        named = adapter_named(request)
        adapter = self._adapters[named[0]] if named is not None else None
        body: dict[str, Any] = {
            "model": adapter if adapter is not None and self._profile.adapter_models else self._base,
            **prompt_fields(self.path, self._spelled(request.prompt)),
            "max_tokens": request.tokens,
            "temperature": 0,
            **self._logprobs,
            **self._profile.always,
        }
        if adapter is not None and self._profile.adapter_field is not None:
            body[self._profile.adapter_field] = adapter
        if request.salt and self._profile.salt is not None:
            body[self._profile.salt] = request.salt
        if not request.reuse and self._profile.bypass is not None:
            body |= {
                key: secrets.token_hex(16) if value == FRESH else value for key, value in self._profile.bypass.items()
            }
        return body | _SAMPLINGS.get(request.sampling, {})

    def action(self, operation: Operation) -> Action:
        """What an operation that is no request is on the wire; empty for one that this server cannot do."""
        flush = self._profile.flush
        return [Post(flush, {})] if isinstance(operation, Flush) and flush is not None else []

    def _spelled(self, prompt: Sequence[int]) -> Any:
        if self.texts.pieces:
            return self.texts.joined(prompt)
        if any(token >= 1 << 31 for token in prompt):
            raise RequestRefused("this server tells the tokens of its answers by text only, and takes ids")
        return prompt

    def _probed(self, *, admin: bool) -> Capabilities:
        ids = self._takes_ids()
        space = _LOWEST_IDS
        if not ids:
            self.texts, space = probed_texts(self.url, {"model": self._base, **self._profile.always}, self.path)
        self._logprobs, top = self._understood(space)
        context = self._context(space)
        block = self._block(space, context)
        flush = ("flush",) if admin and self._profile.flush is not None else ()
        return Capabilities(
            space=space,
            context=context // self.texts.cost,
            operations=("complete", "start", "await", "join", "abort", "evict", *flush),
            samplings=(Sampling.PLAIN, *_SAMPLINGS),
            top_logprobs=top,
            adapters=len(self._adapters),
            adapter_names=bool(self._adapters),
            cached_counts=block is not None,
            block=block or 1,
            approximate_reuse=not ids,
            bypass=self._profile.bypass is not None,
            bypass_how=", ".join(self._profile.bypass or ()),
            salts=self._profile.salt is not None,
            slots=4,
        )

    def _takes_ids(self) -> bool:
        if self._profile.chats or not self._profile.token_ids:
            return False
        return self._counts([number + _LOWEST_IDS.first for number in range(7)]) == 7

    def _understood(self, space: TokenSpace) -> tuple[dict[str, Any], int]:
        """The first spelling of the wish for logprobs that is answered with lists, and their length."""
        for fields in _FLAGGED if self._profile.chats else (*_COUNTED, *_FLAGGED):
            try:
                answer = self._asked(range(space.first, space.first + 3), fields)
            except RequestRefused:
                continue
            length = _longest_list(answer)
            if length:
                return fields, length
        return {}, 0

    def _context(self, space: TokenSpace) -> int:
        """Tokens that prompt and answer may have together; RequestRefused where that is too little to cache."""
        reason = "it took no prompt whole"
        for context in _CONTEXTS:
            pieces = (context - _ROOM) // self.texts.cost
            try:
                usage = self._asked(_long_prompt(space, pieces), {}).usage
            except RequestRefused as refusal:
                reason = refusal.reason
                continue
            if usage is None or usage.prompt_tokens >= pieces * self.texts.cost:
                return context
        raise RequestRefused(reason)

    def _block(self, space: TokenSpace, context: int) -> int | None:
        """Tokens that are reused together, from what is said to be cached of prompts asked twice.

        1 where nothing was reused; None where the server does not tell.
        """
        counts = [self._cached_again(space, min(length, context // 2) // self.texts.cost) for length in _LENGTHS]
        told = [count for count in counts if count is not None]
        return max(1, math.gcd(*told)) if told else None

    def _cached_again(self, space: TokenSpace, length: int) -> int | None:
        prompt = _long_prompt(space, length)
        self._asked(prompt, {})
        usage = self._asked(prompt, {}).usage
        return usage.cached if usage is not None else None

    def _asked(self, prompt: Sequence[int], fields: dict[str, Any]) -> Completion:
        spelled = prompt_fields(self.path, self._spelled(list(prompt)))
        body = {"model": self._base, **spelled, "max_tokens": 1, "temperature": 0} | self._profile.always | fields
        return self._decoded(self._connection.post(self.path, body))

    def _decoded(self, content: bytes) -> Completion:
        answer = decode(content, Completion)
        if self._profile.cached == CACHED:
            return answer
        return with_cached(answer, _number_at(decode(content, Any), self._profile.cached))

    def _counts(self, prompt: Sequence[int]) -> int | None:
        """How many tokens the server says a prompt of ids has; None where it takes no ids."""
        try:
            usage = self._asked(prompt, {}).usage
        except RequestRefused:
            return None
        return usage.prompt_tokens if usage is not None else None


def _long_prompt(space: TokenSpace, length: int) -> list[int]:
    """A prompt that most likely nobody sent before."""
    start = secrets.randbelow(space.count - 13)
    return [space.first + start + number % 13 for number in range(length)]


def _number_at(content: Any, path: str) -> int | None:
    for key in path.split("."):
        content = content.get(key) if isinstance(content, dict) else None
    return content if isinstance(content, int) and content >= 0 else None


def owners(connection: Connection) -> set[str]:
    """Who owns the models of a server, as it says."""
    try:
        return {model.owned_by for model in decode(connection.get("/v1/models"), _Models).data}
    except RequestRefused:
        return set()


def _base_model(connection: Connection, adapters: Sequence[str]) -> str:
    names = [model.id for model in decode(connection.get("/v1/models"), _Models).data]
    for adapter in adapters:
        if adapter not in names:
            raise RequestRefused(f"it has no model or adapter called {adapter!r}; it has {', '.join(names)}")
    base = next((name for name in names if name not in adapters), None)
    if base is None:
        raise RequestRefused("it lists no model")
    return base


def _longest_list(answer: Completion) -> int:
    logprobs = answer.choices[0].logprobs if answer.choices else None
    if logprobs is None:
        return 0
    lengths = [len(entry.top_logprobs or []) for entry in logprobs.content or []]
    return max([*lengths, *(len(top or {}) for top in logprobs.top_logprobs or [])], default=0)
