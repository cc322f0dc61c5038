"""Observations: what one request gave back, and the trace of a plan's run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from scenarios.environment import Environment


class TokenLogprob(msgspec.Struct, frozen=True):
    """One entry of a top-k list: a token id and its natural-log probability."""

    id: int
    logprob: float


class Position(msgspec.Struct, frozen=True):
    """The token chosen at one position of the answer, and the most likely tokens there, likeliest first."""

    token: int
    top: list[TokenLogprob]


class Observation(msgspec.Struct, frozen=True):
    """What a server said in answer to one request."""

    positions: list[Position]
    reused: int | None = None
    """Prompt tokens that the server says it did not compute."""
    computed: int | None = None
    slot: int | None = None
    ms: float | None = None
    """What the server says it took to compute, prompt and answer."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """Ids of the answer."""
        return tuple(position.token for position in self.positions)


class Failure(msgspec.Struct, frozen=True):
    """A request that got no answer that can be judged: refused, cut off, malformed."""

    reason: str
    status: int | None = None


class Step(msgspec.Struct, frozen=True):
    """One request as it ran: what was sent, what it was entitled to, what came back."""

    prompt: tuple[int, ...]
    environment: Environment
    asked: int
    """Tokens asked for."""
    outcome: Observation | Failure


class Trace(msgspec.Struct, frozen=True):
    """What a plan's run gave back: one step for each operation."""

    steps: Sequence[Step]

    @property
    def observations(self) -> list[Observation]:
        """The answers, without the requests that failed."""
        return [step.outcome for step in self.steps if isinstance(step.outcome, Observation)]

    @property
    def hits(self) -> int:
        """Requests for which the server says that it reused something."""
        return sum(1 for observation in self.observations if observation.reused)

    @property
    def reused_tokens(self) -> int:
        """Prompt tokens not computed, over all requests."""
        return sum(observation.reused or 0 for observation in self.observations)
