"""Token ids as text and back: one character of a contiguous range a token, so that nothing is lost either way."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np

from fuzzer.zoo.arithmetic import Floats

FIRST_CHARACTER = 0x4E00


@cache
def piece(token: int) -> str:
    return chr(FIRST_CHARACTER + token)


@cache
def piece_bytes(token: int) -> list[int]:
    return list(piece(token).encode())


def detokenise(tokens: Iterable[int]) -> str:
    return "".join(map(piece, tokens))


def tokenise(text: str, vocabulary: int) -> list[int]:
    return [(ord(character) - FIRST_CHARACTER) % vocabulary for character in text]


def outside(tokens: Iterable[int], vocabulary: int) -> bool:
    return not all(0 <= token < vocabulary for token in tokens)


def most_likely(logprobs: Floats, count: int) -> list[tuple[int, float]]:
    """Tokens and logprobs, best first; a negative count asks for the whole vocabulary."""
    partial = 0 <= count < len(logprobs)
    candidates = np.argpartition(-logprobs, count)[:count] if partial else np.arange(len(logprobs))
    order = candidates[np.argsort(-logprobs[candidates], kind="stable")]
    return list(zip(order.tolist(), logprobs[order].tolist(), strict=True))
