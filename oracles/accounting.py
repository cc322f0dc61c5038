"""Reuse accounting: how much of a prompt could lawfully be reused, against what the server says it reused.

It sees an illegal hit even where the answer hides it (an adapter of almost no effect), and on servers that give no
logprobs.
"""

from __future__ import annotations

from collections.abc import Iterator

from oracles.observations import Observation, Step, Trace
from scenarios.prompts import common_prefix


def reusable(trace: Trace, at: int) -> int | None:
    """Most prompt tokens that step ``at`` could lawfully reuse; None where that cannot be told.

    The longest prefix that it shares with prompt and answer of a request of the same environment that was sent before
    it ended. (A bound from prompts alone flagged 22 % of honest requests.)
    """
    mine = trace.steps[at]
    if mine.span is None or mine.environment is None:
        return None
    lenders = (step for step in _sent_before_the_end_of(at, trace) if _may_lend(step, mine))
    return max((shared_with(mine, step) for step in lenders), default=0)


def hits_from_outside(trace: Trace) -> list[int]:
    """Steps that reused more than any request of the trace could have left, lawfully or not."""
    return [at for at, step in enumerate(trace.steps) if step.span is not None and _beyond(step, at, trace)]


def _beyond(mine: Step, at: int, trace: Trace) -> bool:
    reused = mine.observation.reused if mine.observation is not None else None
    return (reused or 0) > max((shared_with(mine, step) for step in _sent_before_the_end_of(at, trace)), default=0)


def _sent_before_the_end_of(at: int, trace: Trace) -> Iterator[Step]:
    mine = trace.steps[at].span
    for other, step in enumerate(trace.steps):
        if mine is not None and other != at and step.span is not None and step.span.sent < mine.ended:
            yield step


def _may_lend(lender: Step, borrower: Step) -> bool:
    """What a request of mixed environment left behind may lawfully be anything."""
    return lender.environment is None or lender.environment == borrower.environment


def shared_with(mine: Step, other: Step) -> int:
    """Tokens of a prompt that are those of another request, or may be those of its answer."""
    answer = other.outcome.tokens if isinstance(other.outcome, Observation) else ()
    known = other.prompt + answer
    shared = common_prefix(mine.prompt, known)
    unseen = other.aborted or not isinstance(other.outcome, Observation)
    # The server may have gone on after we stopped listening: what we did not see may match.
    return len(mine.prompt) if unseen and shared == len(known) else shared
