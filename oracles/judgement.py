"""Judgement of a plan's run: which steps are suspect.

A suspect is not yet a finding. It says only that one answer lies further from a computation that reused nothing than
rounding explains on this target, that more was reused than could be, or that there was no answer to judge.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from oracles.accounting import reusable
from oracles.bands import Deltas
from oracles.comparison import Comparison, compare
from oracles.noise import Noise, Situation, tail_of
from oracles.observations import Done, Failure, Observation, Step, Trace, ran_beside_another
from scenarios.operations import Sampling

_STILL = 1e-3
"""A bound below which a near-tie is a matter of one token in ten thousand, and does not come back on fresh roots."""


class Oracle(StrEnum):
    """What objected."""

    LOGPROBS = "logprobs"
    TOKENS = "tokens"
    ACCOUNTING = "accounting"
    METAMORPHIC = "metamorphic"
    HEALTH = "health"


class Suspect(msgspec.Struct, frozen=True):
    """One step whose answer is not what its own inputs give."""

    step: int
    oracle: Oracle
    position: int = 0
    """Of the answer's tokens, the first that is wrong."""
    delta: float | None = None
    """Largest |delta logprob|; hardly any where a token was chosen that the server's own logprobs do not prefer."""
    moved: float | None = None
    """How far rounding would have to move a logprob to explain it; ``delta``, or half of the gap between two tokens."""
    bound: float | None = None
    reused: int | None = None
    computed: int | None = None
    allowed: int | None = None
    """Prompt tokens that could lawfully be reused."""
    reason: str = ""


class NearTie(msgspec.Struct, frozen=True):
    """Tokens parted where the reference hardly prefers one: both are right so far, the rest is to be compared anew."""

    position: int


def judge(target: Trace, reference: Trace, noise: Noise, *, accounting: bool = True) -> list[Suspect]:
    """The suspect steps of a run; near-ties must have been resolved into the reference trace (``near_tie``)."""
    suspects: list[Suspect] = []
    for at, ours in enumerate(target.steps):
        theirs = reference.steps[at] if at < len(reference.steps) else Step(outcome=Done())
        suspect = _judge_step(at, ours, theirs, noise, target)
        if suspect is None and accounting:
            suspect = _judge_reuse(at, target)
        suspects += [suspect] if suspect is not None else []
    return suspects


def _judge_step(at: int, ours: Step, theirs: Step, noise: Noise, trace: Trace) -> Suspect | None:
    if isinstance(ours.outcome, Failure):
        return _judge_failure(at, ours, ours.outcome, theirs)
    if isinstance(ours.outcome, Done) or isinstance(theirs.outcome, (Failure, Done)) or ours.environment is None:
        return None
    given = len(ours.outcome.positions)
    # A server may leave out tokens that are a part of a character only; its reference does so at the same places.
    if not ours.aborted and given != ours.asked and given != len(theirs.outcome.positions):
        return Suspect(at, Oracle.HEALTH, reason=f"{given} tokens for {ours.asked} asked")
    return _judge_answer(at, ours, ours.outcome, theirs.outcome, noise, situation(trace, at))


def _judge_failure(at: int, ours: Step, failure: Failure, theirs: Step) -> Suspect | None:
    """A request is judged where the reference could answer it; another operation only where the server broke."""
    answered = isinstance(theirs.outcome, Observation)
    broke = failure.dead or failure.status == 500
    return Suspect(at, Oracle.HEALTH, reason=failure.reason) if broke or answered else None


def _judge_answer(
    at: int, step: Step, ours: Observation, theirs: Observation, noise: Noise, held_to: Situation
) -> Suspect | None:
    comparison = compare(ours, theirs)
    position = comparison.first_above(noise.limits_at(held_to, 0), noise.limits_at(held_to, 1))
    if position is not None:
        delta, bound = _excess(comparison, noise.bound_at(held_to, position), noise.limits_at(held_to, position))
        return Suspect(at, Oracle.LOGPROBS, position, delta, delta, bound, ours.reused, ours.computed)
    bound = noise.bound_at(held_to, comparison.parted or 0)
    if comparison.parted is None or not tells_tokens_apart(step.sampling, comparison.gap, bound):
        return None
    delta, moved = comparison.delta, explained_by(step.sampling, comparison)
    return Suspect(at, Oracle.TOKENS, comparison.parted, delta, moved, bound, ours.reused, ours.computed)


def _excess(comparison: Comparison, bound: float, limits: Deltas) -> tuple[float, float]:
    """The difference and the bound that it exceeds: of the whole class, or of the band that exceeds its own by most."""
    if comparison.delta > bound:
        return comparison.delta, bound
    return max(zip(comparison.by_band, limits, strict=True), key=lambda pair: pair[0] / pair[1])


def tells_tokens_apart(sampling: str, gap: float, bound: float) -> bool:
    """Whether tokens that part are more than a near-tie.

    Logprobs are those before sampling: what a penalty or a bias makes of a gap is not told, so tokens chosen under one
    are held to a reference only where hardly anything moves.
    """
    if sampling == Sampling.PLAIN:
        return gap > 2 * bound
    return sampling != Sampling.SEEDED and bound <= _STILL


def explained_by(sampling: str, comparison: Comparison) -> float:
    """How far rounding would have to move a logprob; what a penalty or a bias makes of a gap is not told."""
    return comparison.moved if sampling == Sampling.PLAIN else comparison.delta


def _judge_reuse(at: int, trace: Trace) -> Suspect | None:
    ours = trace.steps[at].observation
    allowed = reusable(trace, at)
    if ours is None or ours.reused is None or allowed is None or ours.reused <= allowed:
        return None
    reason = f"{ours.reused} tokens reused where at most {allowed} could be"
    return Suspect(at, Oracle.ACCOUNTING, reused=ours.reused, computed=ours.computed, allowed=allowed, reason=reason)


def situation(trace: Trace, at: int) -> Situation:
    """The noise class of a step."""
    answer = trace.steps[at].observation
    tail = tail_of(answer.reused, answer.computed) if answer is not None else tail_of(None, None)
    return Situation(tail, ran_beside_another(trace, at))


def near_tie(target: Trace, at: int, theirs: Observation, noise: Noise) -> NearTie | None:
    """Where the answers to step ``at`` part although nothing tells them apart by more than rounding."""
    step = target.steps[at]
    if step.observation is None or step.sampling != "plain" or not is_whole(step.observation, step.asked):
        return None
    comparison = compare(step.observation, theirs)
    if comparison.parted is None:
        return None
    bound = noise.bound(situation(target, at))
    if comparison.gap > 2 * bound or comparison.delta > bound:
        return None
    return NearTie(comparison.parted)


def is_whole(answer: Observation, asked: int) -> bool:
    """Whether every token of the answer is known, so that the answer can be forced on another server."""
    return len(answer.positions) >= asked


def legal_differences(target: Trace, reference: Trace) -> list[tuple[Situation, Deltas]]:
    """Class and |delta logprob| of each step; the samples of calibration, from runs that reuse lawfully only."""
    samples: list[tuple[Situation, Deltas]] = []
    for at, (ours, theirs) in enumerate(zip(target.steps, reference.steps, strict=False)):
        if isinstance(ours.outcome, Observation) and isinstance(theirs.outcome, Observation):
            samples.append((situation(target, at), compare(ours.outcome, theirs.outcome).by_band))
    return samples
