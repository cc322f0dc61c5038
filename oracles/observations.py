"""Observations: what one request gave back, and the trace of a plan's run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from operator import attrgetter

import msgspec

from scenarios.environment import Environment


class TokenLogprob(msgspec.Struct, frozen=True):
    """One entry of a top-k list: a token id and its natural-log probability."""

    id: int
    logprob: float


def all_finite(entries: Iterable[TokenLogprob]) -> bool:
    """Whether every log probability is a number; without a Python loop, since this is asked of every answer."""
    return all(map(isfinite, map(_LOGPROB, entries)))


_LOGPROB = attrgetter("logprob")


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
    """Something asked that got no answer: refused, cut off, malformed."""

    reason: str
    status: int | None = None
    dead: bool = False
    """Nothing answers any more."""
    log: str = ""
    """The last lines of its log."""


class Done(msgspec.Struct, frozen=True):
    """An operation that has no answer of its own was done; ``count`` of what, where the server tells."""

    count: int | None = None


class Span(msgspec.Struct, frozen=True):
    """When a request was sent, gave its first token and ended, on one count of events for the whole trace."""

    sent: int
    first: int | None
    ended: int


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One operation as it ran; for a request, what was sent, what it was entitled to and what came back."""

    outcome: Observation | Failure | Done
    prompt: tuple[int, ...] = ()
    environment: Environment | None = None
    """None: not a request, or one whose environment changed while it ran, so that its answer is not judged."""
    asked: int = 0
    """Tokens asked for."""
    sampling: str = "plain"
    span: Span | None = None
    aborted: bool = False

    @property
    def observation(self) -> Observation | None:
        """The answer, if this is a request that got one."""
        return self.outcome if isinstance(self.outcome, Observation) else None


class Trace(msgspec.Struct, frozen=True):
    """What a plan's run gave back: one step for each operation, up to the one in which the server died."""

    steps: Sequence[Step]
    unrestored: str | None = None
    """Why the first versions that later plans rely on could not be brought back; None where they were."""

    @property
    def observations(self) -> list[Observation]:
        """The answers, without the requests that failed."""
        return [step.outcome for step in self.steps if isinstance(step.outcome, Observation)]

    @property
    def lost(self) -> int | None:
        """The first step whose request the server did not live to answer, if there is one."""
        outcomes = enumerate(step.outcome for step in self.steps)
        return next((at for at, outcome in outcomes if isinstance(outcome, Failure) and outcome.dead), None)

    @property
    def failure(self) -> Failure | None:
        """How the server was lost, if it was."""
        outcome = self.steps[self.lost].outcome if self.lost is not None else None
        return outcome if isinstance(outcome, Failure) else None

    @property
    def hits(self) -> int:
        """Requests for which the server says that it reused something."""
        return sum(1 for observation in self.observations if observation.reused)

    @property
    def reused_tokens(self) -> int:
        """Prompt tokens not computed, over all requests."""
        return sum(observation.reused or 0 for observation in self.observations)


def overlapped(one: Step, other: Step) -> bool:
    """Whether two requests were seen to run at the same time: each sent its first token before the other had ended."""
    if one.span is None or other.span is None or one.span.first is None or other.span.first is None:
        return False
    return one.span.first < other.span.ended and other.span.first < one.span.ended


def ran_beside_another(trace: Trace, step: int) -> bool:
    """Whether a request was in flight at the same time as any other, witnessed or not."""
    mine = trace.steps[step].span
    spans = (other.span for at, other in enumerate(trace.steps) if at != step)
    return mine is not None and any(span.sent < mine.ended and mine.sent < span.ended for span in spans if span)


def with_outcome(trace: Trace, at: int, outcome: Observation | Failure) -> Trace:
    """The trace with another outcome of one step."""
    steps = list(trace.steps)
    steps[at] = msgspec.structs.replace(steps[at], outcome=outcome)
    return Trace(steps)
