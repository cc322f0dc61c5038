"""Judgement of a plan's run: which steps are suspect.

A suspect is not yet a finding. It says only that one answer lies further from a computation that reused nothing than
rounding explains on this target.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from oracles.comparison import Comparison, compare
from oracles.noise import Noise, Tail, tail_of
from oracles.observations import Failure, Observation, Step, Trace


class Oracle(StrEnum):
    """What objected."""

    LOGPROBS = "logprobs"
    TOKENS = "tokens"
    HEALTH = "health"


class Suspect(msgspec.Struct, frozen=True):
    """One step whose answer is not what its own inputs give."""

    step: int
    oracle: Oracle
    position: int = 0
    """Of the answer's tokens, the first that is wrong."""
    delta: float | None = None
    bound: float | None = None
    reused: int | None = None
    computed: int | None = None
    reason: str = ""


class NearTie(msgspec.Struct, frozen=True):
    """Tokens parted where the reference hardly prefers one: both are right so far, the rest is to be compared anew."""

    position: int


def judge(target: Trace, reference: Trace, noise: Noise) -> list[Suspect]:
    """The suspect steps of a run; near-ties must have been resolved into the reference trace (``near_tie``)."""
    # A server that died ends its trace early.
    pairs = enumerate(zip(target.steps, reference.steps, strict=False))
    return [suspect for at, (ours, theirs) in pairs if (suspect := judge_step(at, ours, theirs, noise)) is not None]


def judge_step(at: int, ours: Step, theirs: Step, noise: Noise) -> Suspect | None:
    """The suspect that step ``at`` is, if it is one; a step that the reference could not answer is never one."""
    if isinstance(theirs.outcome, Failure):
        return None
    if isinstance(ours.outcome, Failure):
        return Suspect(at, Oracle.HEALTH, reason=ours.outcome.reason)
    if len(ours.outcome.positions) != ours.asked:
        return Suspect(at, Oracle.HEALTH, reason=f"{len(ours.outcome.positions)} tokens for {ours.asked} asked")
    return _judge_answers(at, ours.outcome, theirs.outcome, noise)


def _judge_answers(at: int, ours: Observation, theirs: Observation, noise: Noise) -> Suspect | None:
    comparison = compare(ours, theirs)
    bound = noise.bound(tail_of(ours.reused, ours.computed))
    position = comparison.first_above(bound)
    oracle = Oracle.LOGPROBS
    if position is None:
        position, oracle = comparison.parted, Oracle.TOKENS
        if position is None or comparison.gap <= 2 * bound:
            return None
    return Suspect(at, oracle, position, comparison.delta, bound, ours.reused, ours.computed)


def near_tie(ours: Observation, theirs: Observation, noise: Noise) -> NearTie | None:
    """Where these answers part although nothing tells them apart by more than rounding."""
    comparison = compare(ours, theirs)
    bound = noise.bound(tail_of(ours.reused, ours.computed))
    if comparison.parted is None or comparison.gap > 2 * bound or comparison.delta > bound:
        return None
    return NearTie(comparison.parted)


def legal_differences(target: Trace, reference: Trace) -> list[tuple[Tail, float]]:
    """Class and |delta logprob| of each step; the samples of calibration, from runs that reuse lawfully only."""
    samples: list[tuple[Tail, float]] = []
    for ours, theirs in zip(target.steps, reference.steps, strict=False):
        if isinstance(ours.outcome, Observation) and isinstance(theirs.outcome, Observation):
            tail = tail_of(ours.outcome.reused, ours.outcome.computed)
            samples += [(tail, compare(ours.outcome, theirs.outcome).delta)] if tail is not None else []
    return samples


def worst(suspects: Sequence[Suspect]) -> Suspect | None:
    """The first suspect: later ones may only be its consequences."""
    return min(suspects, key=lambda suspect: suspect.step, default=None)


__all__ = [
    "Comparison",
    "NearTie",
    "Oracle",
    "Suspect",
    "judge",
    "judge_step",
    "legal_differences",
    "near_tie",
    "worst",
]
