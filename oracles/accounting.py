"""Reuse accounting: how much of a prompt could lawfully be reused, against what the server says it reused.

It sees an illegal hit even where the answer hides it (an adapter of almost no effect), and on servers that give no
logprobs.
"""

from __future__ import annotations

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
    ended = mine.span.ended
    others = (
        step
        for other, step in enumerate(trace.steps)
        if other != at and step.span is not None and step.span.sent < ended
    )
    return max((_shared(mine, step) for step in others if _may_lend(step, mine)), default=0)


def _may_lend(lender: Step, borrower: Step) -> bool:
    """What a request of mixed environment left behind may lawfully be anything."""
    return lender.environment is None or lender.environment == borrower.environment


def _shared(mine: Step, other: Step) -> int:
    answer = other.outcome.tokens if isinstance(other.outcome, Observation) else ()
    known = other.prompt + answer
    shared = common_prefix(mine.prompt, known)
    unseen = other.aborted or not isinstance(other.outcome, Observation)
    # The server may have gone on after we stopped listening: what we did not see may match.
    return len(mine.prompt) if unseen and shared == len(known) else shared


def reuse_lost(trace: Trace, at: int) -> int | None:
    """Prompt tokens that step ``at`` had to be able to reuse and did not; None where it did, or need not have.

    Certain only for a request right after another of the same environment, on its own, with most of the prompt the
    same; used to report, never to fail a run.
    """
    if at == 0:
        return None
    mine, before = trace.steps[at], trace.steps[at - 1]
    if mine.observation is None or mine.observation.reused != 0 or before.observation is None or before.aborted:
        return None
    if before.environment is None or before.environment != mine.environment:
        return None
    shared = _shared(mine, before)
    return shared if shared >= 4 and 2 * shared >= len(mine.prompt) else None
