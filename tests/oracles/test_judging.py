"""Noise and judgement: what counts as suspect, and what as rounding."""

from __future__ import annotations

import msgspec
import pytest
from making import answer, position, step, trace

from oracles.judgement import Oracle, judge, legal_differences, near_tie
from oracles.noise import LEAST, SAFETY, Noise, Situation, Tail, measured, tail_of
from oracles.observations import Failure, Observation, Trace

TIGHT = measured([(Situation(Tail.COLD), 0.0), (Situation(Tail.ONE), 1e-4)])
GOOD = {7: -0.1, 8: -2.5}


def off_by(delta: float, token: int = 7) -> Observation:
    return answer(position(token, {7: -0.1, 8: -2.5 + delta}), reused=0, computed=5)


def right() -> Observation:
    return answer(position(7, GOOD), reused=0, computed=5)


@pytest.mark.parametrize(
    ("reused", "computed", "tail"),
    [
        (None, 3, Tail.UNKNOWN),
        (3, None, Tail.UNKNOWN),
        (0, 1, Tail.COLD),
        (5, 1, Tail.ONE),
        (5, 0, Tail.ONE),
        (5, 2, Tail.SHORT),
        (5, 8, Tail.SHORT),
        (5, 9, Tail.LONG),
    ],
)
def test_classes(reused: int | None, computed: int | None, tail: Tail) -> None:
    assert tail_of(reused, computed) is tail


def test_a_bound_is_more_than_what_was_seen_and_never_nothing() -> None:
    noise = measured([(Situation(Tail.ONE), 2e-3), (Situation(Tail.ONE), 1e-3), (Situation(Tail.COLD), 0.0)])
    assert noise.bound(Situation(Tail.ONE)) == SAFETY * 2e-3
    assert noise.bound(Situation(Tail.COLD)) == LEAST
    assert [(bound.samples, bound.largest) for bound in noise.bounds] == [(1, 0.0), (2, 2e-3)]


def test_a_class_that_was_not_measured_gets_the_widest_bound() -> None:
    assert TIGHT.bound(Situation(Tail.LONG)) == TIGHT.bound(Situation(Tail.ONE))
    assert Noise(()).bound(Situation(Tail.ONE)) == LEAST


def test_rounding_is_no_suspect() -> None:
    assert judge(trace(off_by(0.9 * LEAST)), trace(right()), TIGHT) == []


def test_a_moved_logprob_is_a_suspect() -> None:
    (suspect,) = judge(trace(right(), off_by(0.01)), trace(right(), right()), TIGHT)
    assert (suspect.step, suspect.oracle, suspect.position) == (1, Oracle.LOGPROBS, 0)
    assert suspect.delta == pytest.approx(0.01)
    assert suspect.bound == LEAST


def test_a_token_parts_within_the_bound_only_at_a_tie() -> None:
    """Both servers may move by the bound, so that a gap up to twice the bound flips a token lawfully."""
    loose = measured([(Situation(Tail.COLD), 0.1)])
    bound = loose.bound(Situation(Tail.COLD))
    assert judge(trace(flipped(1.9 * bound)), trace(tied(1.9 * bound)), loose) == []
    (suspect,) = judge(trace(flipped(2.1 * bound)), trace(tied(2.1 * bound)), loose)
    assert suspect.oracle is Oracle.TOKENS
    assert near_tie(step(flipped(1.9 * bound)), tied(1.9 * bound), loose) is not None
    assert near_tie(step(flipped(2.1 * bound)), tied(2.1 * bound), loose) is None


def tied(gap: float) -> Observation:
    return answer(position(7, {7: -1.0, 8: -1.0 - gap}), reused=0, computed=5)


def flipped(gap: float) -> Observation:
    """Chose the other token although it shows the same distribution."""
    return answer(position(8, {7: -1.0, 8: -1.0 - gap}), reused=0, computed=5)


def test_a_tie_is_none_where_the_logprobs_moved() -> None:
    assert near_tie(step(off_by(0.5, token=8)), right(), TIGHT) is None


def test_an_answer_of_the_wrong_length_is_ill() -> None:
    short = trace(answer(position(7, GOOD), reused=0, computed=5))
    asked_two = type(short)([step(right(), asked=2)])
    (suspect,) = judge(asked_two, short, TIGHT)
    assert suspect.oracle is Oracle.HEALTH
    assert "1 tokens for 2 asked" in suspect.reason


def test_only_a_request_that_the_reference_answers_can_be_refused_wrongly() -> None:
    refusal = Failure("status 400: no", 400)
    (suspect,) = judge(trace(refusal), trace(right()), TIGHT)
    assert (suspect.oracle, suspect.reason) == (Oracle.HEALTH, "status 400: no")
    assert judge(trace(refusal), trace(refusal), TIGHT) == []
    assert judge(trace(right()), trace(refusal), TIGHT) == []


def test_a_server_that_dies_ends_its_trace() -> None:
    """The steps that were never run are not judged."""
    (suspect,) = judge(trace(right(), Failure("gone", dead=True)), trace(right(), right(), right()), TIGHT)
    assert (suspect.step, suspect.oracle) == (1, Oracle.HEALTH)


def test_samples_of_calibration_know_their_class() -> None:
    samples = legal_differences(trace(right(), off_by(0.01), Failure("no")), trace(right(), right(), right()))
    assert [situation.tail for situation, _ in samples] == [Tail.COLD, Tail.COLD]
    assert [delta for _, delta in samples] == pytest.approx([0.0, 0.01])


@pytest.mark.parametrize(("sampling", "suspect"), [("bias", True), ("penalties", True), ("seeded", False)])
def test_tokens_chosen_in_a_way_of_their_own_are_held_to_the_reference_where_nothing_moves(
    sampling: str, suspect: bool
) -> None:
    ours, theirs = (trace(answer(position(token, GOOD), reused=0, computed=5)) for token in (8, 7))
    biased = Trace([msgspec.structs.replace(ours.steps[0], sampling=sampling)])
    assert [one.oracle for one in judge(biased, theirs, TIGHT)] == ([Oracle.TOKENS] if suspect else [])
    assert judge(biased, theirs, measured([(Situation(Tail.COLD), 0.1)])) == []
