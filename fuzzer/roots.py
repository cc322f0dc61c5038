"""Root tokens: the token at position 0 is never used twice in a server's life.

A prefix cache matches from position 0 on, so two plans whose first tokens differ cannot reach each other's entries.
A shared first token, or one that comes round again, lets a stale entry of an earlier plan into a later one; then the
later plan is wrong only with that history and nobody can say why.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager

from fuzzer.errors import CannotJudge
from scenarios.prompts import TokenSpace


class RootsExhausted(CannotJudge):
    """Every root token of this server's life is used; a launched server is restarted, another cannot be."""


def elsewhere(space: TokenSpace, seed: int) -> RootPool:
    """A pool for a server that may have met earlier runs: starting anywhere, in an order of its own.

    Where a run comes to what another one asked, the prompts before and after are most likely new: what one of them hit
    does not come back on the next.
    """
    rng = random.Random(seed)
    strides = [stride for stride in range(1, space.count) if math.gcd(stride, space.count) == 1] or [1]
    return RootPool(space, rng.randrange(space.count), rng.choice(strides))


class RootPool:
    """Hands out each token of a space once, starting anywhere in it; ``stride`` has no divisor in common with it."""

    def __init__(self, space: TokenSpace, start: int = 0, stride: int = 1) -> None:
        self._space = space
        self._start = start
        self._stride = stride
        self._taken = 0
        self._taken_last = 0
        self._last_first = False

    @property
    def left(self) -> int:
        """How many root tokens are still unused."""
        return self._space.count - self._taken - self._taken_last

    @contextmanager
    def last_first(self) -> Iterator[None]:
        """Hand out the last tokens meanwhile: those of later plans are the same, however many are taken here."""
        self._last_first = True
        try:
            yield
        finally:
            self._last_first = False

    def take(self, count: int) -> tuple[int, ...]:
        """``count`` unused tokens; raises RootsExhausted where that many are not left."""
        if count > self.left:
            raise RootsExhausted(
                f"all {self._space.count} tokens of the vocabulary were used as first tokens on this server; restart it"
            )
        if self._last_first:
            self._taken_last += count
            first = self._space.count - self._taken_last
        else:
            first = self._taken
            self._taken += count
        offsets = (self._start + number * self._stride for number in range(first, first + count))
        return tuple(self._space.first + offset % self._space.count for offset in offsets)
