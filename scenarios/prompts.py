"""Prompts as paths in a tree: equal paths give equal tokens, a common prefix of paths is a common prefix of tokens.

A path starts at a root, which stands for one token at position 0, and goes on through named segments. The tokens
of a segment are a stream that only its name decides, so a shorter segment is a prefix of a longer one, and dropping
a segment in mid-path moves the later ones unchanged to an earlier position.

Which token a root stands for is not part of the path: whoever runs a plan binds roots to tokens that the server has
not yet seen at position 0, since no cache can then mix this plan with an earlier one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import msgspec

_STREAM = 4096


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """``length`` tokens of the stream called ``name``."""

    name: str
    length: int


class Prompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """A path from root number ``root`` through ``segments``.

    With ``after``, the path starts not at the root but where the request of step ``after`` ended: at its prompt and
    the first ``answer`` tokens of its answer. ``root`` is then that prompt's own.
    """

    root: int
    segments: tuple[Segment, ...] = ()
    after: int | None = None
    answer: int = 0

    @property
    def length(self) -> int:
        """Number of tokens that the path adds, the root's one included."""
        return (1 if self.after is None else self.answer) + sum(segment.length for segment in self.segments)


class TokenSpace(msgspec.Struct, frozen=True):
    """The token ids that prompts may use: ``first`` up to ``first + count - 1``, plain text tokens only."""

    first: int
    count: int


@lru_cache(maxsize=4096)
def _stream(name: str, space: TokenSpace, length: int) -> tuple[int, ...]:
    # SHAKE gives the same leading bytes for every digest length, here and on any machine years later.
    words = memoryview(hashlib.shake_128(name.encode()).digest(4 * length))
    return tuple(
        space.first + int.from_bytes(words[4 * at : 4 * at + 4], "little") % space.count for at in range(length)
    )


def prompt_tokens(
    prompt: Prompt, roots: Sequence[int], space: TokenSpace, grown: Sequence[int] = ()
) -> tuple[int, ...]:
    """Token ids of ``prompt`` where root ``r`` is bound to the token ``roots[r]``.

    ``grown`` is what the prompt goes on after, where it has an ``after``. Raises ValueError for a segment that is
    longer than a stream.
    """
    tokens: list[int] = [roots[prompt.root]] if prompt.after is None else list(grown)
    for segment in prompt.segments:
        if segment.length > _STREAM:
            raise ValueError(f"segment {segment.name!r} is longer than {_STREAM} tokens")
        tokens += _stream(segment.name, space, segment.length)
    return tuple(tokens)


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the longest common prefix of two token sequences."""
    for at, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return at
    return min(len(left), len(right))
