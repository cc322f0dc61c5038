"""Root tokens: the token at position 0 is never used twice in a server's life.

A prefix cache matches from position 0 on, so two plans whose first tokens differ cannot reach each other's entries.
A shared first token, or one that comes round again, lets a stale entry of an earlier plan into a later one; then the
later plan is wrong only with that history and nobody can say why.
"""

from __future__ import annotations

from fuzzer.errors import CannotJudge
from scenarios.prompts import TokenSpace


class RootsExhausted(CannotJudge):
    """Every root token of this server's life is used; a launched server is restarted, another cannot be."""


class RootPool:
    """Hands out each token of a space once, starting anywhere in it."""

    def __init__(self, space: TokenSpace, start: int = 0) -> None:
        self._space = space
        self._start = start
        self._taken = 0

    @property
    def left(self) -> int:
        """How many root tokens are still unused."""
        return self._space.count - self._taken

    def take(self, count: int) -> tuple[int, ...]:
        """``count`` unused tokens; raises RootsExhausted where that many are not left."""
        if count > self.left:
            raise RootsExhausted(
                f"all {self._space.count} tokens of the vocabulary were used as first tokens on this server; restart it"
            )
        offsets = range(self._start + self._taken, self._start + self._taken + count)
        self._taken += count
        return tuple(self._space.first + offset % self._space.count for offset in offsets)
