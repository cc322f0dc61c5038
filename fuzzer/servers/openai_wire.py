"""The answers of OpenAI-style completion routes, in every spelling that servers give them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from fuzzer.servers.protocol import RequestRefused
from fuzzer.servers.texts import Texts
from oracles.observations import Observation, Position, TokenLogprob, all_finite

_ID_PREFIX = "token_id:"


class Entry(msgspec.Struct, frozen=True):
    """One token of a list of objects, the spelling of chat completions, of mlx-lm and of llama-server."""

    logprob: float | None = None
    token: str = ""
    id: int | None = None
    top_logprobs: list[Entry] | None = None


class Logprobs(msgspec.Struct, frozen=True):
    """Either ``content``, or the older parallel lists ``tokens`` and ``top_logprobs``."""

    content: list[Entry] | None = None
    tokens: list[str] | None = None
    top_logprobs: list[dict[str, float | None] | None] | None = None


class Message(msgspec.Struct, frozen=True):
    """The text of a chat answer, whole or the next part of it."""

    content: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """One answer, or the next part of a streamed one."""

    text: str | None = None
    message: Message | None = None
    delta: Message | None = None
    logprobs: Logprobs | None = None
    token_ids: list[int] | None = None

    @property
    def words(self) -> str:
        """The text, wherever it stands."""
        texts = (self.text, *(part.content for part in (self.message, self.delta) if part is not None))
        return next((text for text in texts if text), "")


class Details(msgspec.Struct, frozen=True):
    """What the usage says beyond totals."""

    cached_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True):
    """Counts of tokens."""

    prompt_tokens: int = 0
    completion_tokens: int | None = None
    prompt_tokens_details: Details | None = None

    @property
    def cached(self) -> int | None:
        """Prompt tokens that were not computed; None where the server does not tell."""
        return self.prompt_tokens_details.cached_tokens if self.prompt_tokens_details is not None else None


class Completion(msgspec.Struct, frozen=True):
    """A whole answer, or one event of a stream."""

    choices: list[Choice] = []
    usage: Usage | None = None
    system_fingerprint: str | None = None
    error: Any = None


def positions_of(choice: Choice, texts: Texts, *, greedy: bool, most: int) -> list[Position]:
    """The tokens of a choice with their lists; lists are cut to ``most`` entries, likeliest first.

    ``greedy``: where the server does not say which token it chose, it chose the likeliest.
    """
    logprobs = choice.logprobs
    if logprobs is not None and logprobs.content is not None:
        found = [_from_entry(entry, texts, most, greedy=greedy) for entry in logprobs.content]
    elif logprobs is not None and logprobs.tokens is not None:
        found = _from_lists(logprobs.tokens, logprobs.top_logprobs or [], texts, most)
    elif choice.token_ids is not None:
        return [Position(token, []) for token in choice.token_ids]
    else:
        return [Position(token, []) for token in texts.split(choice.words)]
    if choice.token_ids is not None and len(choice.token_ids) == len(found):
        found = [Position(token, one.top) for token, one in zip(choice.token_ids, found, strict=True)]
    return found


def prompt_fields(route: str, prompt: Any) -> dict[str, Any]:
    """How a prompt is spelled on this route: to a chat it is one message of the user."""
    if route.endswith("/chat/completions"):
        return {"messages": [{"role": "user", "content": prompt}]}
    return {"prompt": prompt}


def with_cached(answer: Completion, cached: int | None) -> Completion:
    """The answer with a count of cached tokens that stood elsewhere."""
    usage = msgspec.structs.replace(answer.usage or Usage(), prompt_tokens_details=Details(cached))
    return msgspec.structs.replace(answer, usage=usage)


def observation_of(positions: list[Position], usage: Usage | None, *, tells: bool) -> Observation:
    """The answer with the server's counts.

    ``tells``: the server says how many tokens were cached, and some servers leave the field out where none were.
    """
    if usage is None or not tells:
        return Observation(positions)
    cached = usage.cached or 0
    return Observation(positions, cached, max(0, usage.prompt_tokens - cached))


def _from_entry(entry: Entry, texts: Texts, most: int, *, greedy: bool) -> Position:
    top = _sorted(((_number(one.token, one.id, texts), one.logprob) for one in entry.top_logprobs or []), most)
    if greedy and top:
        return Position(top[0].id, top)
    return Position(_number(entry.token, entry.id, texts), top)


def _from_lists(
    tokens: list[str], lists: list[dict[str, float | None] | None], texts: Texts, most: int
) -> list[Position]:
    padded = [*lists, *([None] * (len(tokens) - len(lists)))]
    return [
        Position(
            _number(token, None, texts),
            _sorted(((_number(text, None, texts), v) for text, v in (top or {}).items()), most),
        )
        for token, top in zip(tokens, padded, strict=False)
    ]


def _sorted(entries: Iterable[tuple[int, float | None]], most: int) -> list[TokenLogprob]:
    known = [TokenLogprob(token, value) for token, value in entries if value is not None]
    if not all_finite(known):
        raise RequestRefused("a log probability is not a finite number")
    return sorted(known, key=lambda entry: -entry.logprob)[:most]


def _number(token: str, number: int | None, texts: Texts) -> int:
    if token.startswith(_ID_PREFIX) and token[len(_ID_PREFIX) :].isdecimal():
        return int(token[len(_ID_PREFIX) :])
    if texts.pieces or number is None:
        return texts.token(token)
    return number
