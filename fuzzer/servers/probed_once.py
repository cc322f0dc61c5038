"""What only trying tells of a server is tried on the first one; those of the same kind that start later are told it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar


class Probing(Protocol):
    """A server's adapter that has tried what cannot be asked."""

    @property
    def probed(self) -> Any:
        """What it found."""
        ...


S = TypeVar("S", bound=Probing)


class ProbedOnce:
    """Kept by whoever starts servers of one build, model and command line.

    Trying leaves state behind, which a server that is to have seen nothing must not have.
    """

    def __init__(self) -> None:
        self._probed: Any = None

    def attached(self, attach: Callable[[Any], S]) -> S:
        """``attach`` given what is known; None on the first call, whose server is tried."""
        server = attach(self._probed)
        self._probed = server.probed
        return server
