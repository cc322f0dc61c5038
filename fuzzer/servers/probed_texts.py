"""Finds pieces of text that a server's tokenizer keeps apart, for prompts in text.

Tokenizers merge across borders, so a piece is only used where the server itself counts it the same alone, doubled and
among others, and as much as every other piece, so that lengths in pieces are lengths in tokens. Pieces are pairs of
words: a few dozen words give enough pairs to begin every prompt of a run with another one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from fuzzer.errors import UnreachableError
from fuzzer.servers.http import Connection, decode
from fuzzer.servers.openai_wire import Completion, prompt_fields
from fuzzer.servers.protocol import RequestRefused
from fuzzer.servers.texts import Texts
from scenarios.prompts import TokenSpace

_WORDS = """
time year people way day man thing woman life child world school state family student group country problem hand
part place case week company system program question work government number night point home water room mother
area money story fact month lot right study book eye job word business issue side kind head house service friend
father power hour game line end member law car city name president team minute idea body information back parent
face level office door health person art war history party result change morning reason research girl guy moment
air teacher force education food summer winter river stone paper table window street music letter color blood
""".split()  # noqa: SIM905 - a list of a hundred quoted words is harder to read
_SIGNS = [chr(0x4E00 + number) for number in range(120)]
SAMPLE = " ".join(_WORDS) + "".join(chr(0x4E00 + number) for number in range(2044))
"""Text whose tokens are spread over any vocabulary, that of our tiny models included."""
_FEWEST = 24
_ENOUGH = 48
_TOGETHER = 16


def probed_texts(url: str, fields: dict[str, Any], route: str = "/v1/completions") -> tuple[Texts, TokenSpace]:
    """Pieces for the server at ``url``; raises UnreachableError where its tokenizer keeps too few words apart."""
    connection = Connection(url)
    try:
        return texts_by(lambda text: _count(connection, text, fields, route), url)
    finally:
        connection.close()


def texts_by(count: Callable[[str], int], url: str) -> tuple[Texts, TokenSpace]:
    """Pieces for the server at ``url``, whose tokenizer ``count`` asks."""
    try:
        for candidates in ([f" {word}" for word in _WORDS], _SIGNS):
            pieces, cost = _kept_apart(count, candidates)
            if len(pieces) >= _FEWEST:
                pairs = ["".join(pair) for pair in itertools.permutations(pieces, 2)]
                return Texts(pairs, cost=2 * cost), TokenSpace(0, len(pairs))
    except RequestRefused as refusal:
        raise UnreachableError(f"{url} does not count the tokens of a prompt: {refusal.reason}") from None
    raise UnreachableError(f"{url}: its tokenizer keeps too few words apart to make prompts of")


def _kept_apart(count: Callable[[str], int], candidates: Sequence[str]) -> tuple[list[str], int]:
    """Enough candidates that cost equally much wherever they stand, and what they cost.

    They are tested many at a time, halved where they do not cost what the first one costs, and then each alone, as a
    dear one and a cheap one make up for each other among many.
    """
    before = count(candidates[0])
    each = count(candidates[0] * 2) - before

    def apart(some: Sequence[str]) -> list[str]:
        if count(candidates[0] + "".join(some) + "".join(reversed(some))) == before + 2 * each * len(some):
            return list(some)
        if len(some) == 1:
            return []
        half = len(some) // 2
        return apart(some[:half]) + apart(some[half:])

    if each < 1:
        return [], each
    among = (piece for batch in _batches(candidates[1:]) for piece in apart(batch))
    # No text is an earlier one without its end: mlx_lm.server 0.32.2 dies of a prompt that it has stored as a whole.
    alone = (piece for piece in among if count(piece + candidates[0]) == before + each)
    return list(itertools.islice(alone, _ENOUGH)), each


def _batches(candidates: Sequence[str]) -> list[Sequence[str]]:
    return [candidates[at : at + _TOGETHER] for at in range(0, len(candidates), _TOGETHER)]


def _count(connection: Connection, text: str, fields: dict[str, Any], route: str) -> int:
    body = prompt_fields(route, text) | {"max_tokens": 1, "temperature": 0.0} | fields
    usage = decode(connection.post(route, body), Completion).usage
    if usage is None or usage.prompt_tokens < 1:
        raise RequestRefused("its answers have no usage.prompt_tokens")
    return usage.prompt_tokens
