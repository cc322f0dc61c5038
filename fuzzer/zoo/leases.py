"""What the engine knows of a cache: it lends memory to a request, learns what was computed, and takes it back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fuzzer.zoo.arithmetic import Floats
from fuzzer.zoo.forward import Memory
from fuzzer.zoo.requests import Request


@dataclass(slots=True)
class Lease:
    """A running request's memory and row; ``reused`` prompt tokens were in it, ``hidden`` is the last row computed."""

    request: Request
    memory: Memory
    row: int
    reused: int
    hidden: Floats | None = None


class Cache(Protocol):
    def admit(self, request: Request) -> Lease | None:
        """Memory with the longest lawful prefix in it, or None while there is no room."""
        ...

    def chunk_end(self, lease: Lease, start: int, end: int) -> int:
        """Where a prefill chunk from ``start`` must stop so that the state there can be kept; at most ``end``."""
        ...

    def commit(self, lease: Lease, tokens: list[int]) -> None:
        """The tokens were computed into the lease's memory."""
        ...

    def release(self, lease: Lease, sampled: int | None, *, aborted: bool) -> list[tuple[Lease, int]]:
        """Take the memory back; ``sampled`` is the answer's last token, never fed.

        Returns the leases that moved to another row, each with the row that it left.
        """
        ...
