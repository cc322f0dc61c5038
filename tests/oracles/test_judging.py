"""Noise and judgement: what counts as suspect, and what as rounding."""

from __future__ import annotations

import msgspec
import pytest
from making import answer, position, step, trace

from oracles.accounting import hits_from_outside
from oracles.bands import Deltas
from oracles.judgement import Oracle, judge, legal_differences, near_tie
from oracles.noise import CAP, ENOUGH, FEW, LEAST, SAFETY, Noise, Situation, Tail, measured, tail_of
from oracles.observations import Failure, Observation, Span, Step, Trace


def legal(tail: Tail, *deltas: float, beside: bool = False) -> list[tuple[Situation, Deltas]]:
    """Samples of a class, enough of them for a bound of its own; the last band moves."""
    return [(Situation(tail, beside), (0.0, 0.0, 0.0, 0.0, delta)) for delta in deltas for _ in range(FEW)]


TIGHT = measured([*legal(Tail.COLD, 0.0), *legal(Tail.ONE, 1e-4)])
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
    noise = measured([*legal(Tail.ONE, 2e-3, 1e-3), *legal(Tail.COLD, 0.0)])
    assert noise.bound(Situation(Tail.ONE)) == SAFETY * 2e-3
    assert noise.bound(Situation(Tail.COLD)) == LEAST
    assert [(bound.samples, bound.largest) for bound in noise.bounds] == [(FEW, 0.0), (2 * FEW, 2e-3)]


def test_a_class_of_few_samples_is_held_to_the_widest_bound_of_all() -> None:
    few = legal(Tail.LONG, 0.0)[1:]
    assert measured([*legal(Tail.ONE, 2e-3), *few]).bound(Situation(Tail.LONG)) == SAFETY * 2e-3
    assert measured([*legal(Tail.ONE, 2e-3), *few, *few[:1]]).bound(Situation(Tail.LONG)) == LEAST


def test_a_bound_of_few_samples_becomes_the_class_s_own_with_more() -> None:
    few = legal(Tail.LONG, 1e-3)[1:]
    noise = measured([*legal(Tail.ONE, 2e-3), *few])
    assert noise.widened(few[:1]).bound(Situation(Tail.LONG)) == SAFETY * 1e-3


def test_a_class_that_was_not_measured_gets_the_widest_bound() -> None:
    assert TIGHT.bound(Situation(Tail.LONG)) == TIGHT.bound(Situation(Tail.ONE))
    assert Noise(()).bound(Situation(Tail.ONE)) == LEAST


def test_the_widest_bound_knows_of_other_settings() -> None:
    """One setting may not show in a hundred requests how far the target rounds."""
    noise = msgspec.structs.replace(TIGHT, elsewhere=2e-3)
    assert noise.bound() == noise.bound(Situation(Tail.LONG)) == SAFETY * 2e-3
    assert noise.bound(Situation(Tail.ONE)) == TIGHT.bound(Situation(Tail.ONE))
    assert noise.widened(legal(Tail.SHORT, 0.0)).elsewhere == 2e-3


def test_rounding_is_no_suspect() -> None:
    assert judge(trace(off_by(0.9 * LEAST)), trace(right()), TIGHT) == []


def test_a_moved_logprob_is_a_suspect() -> None:
    (suspect,) = judge(trace(right(), off_by(0.01)), trace(right(), right()), TIGHT)
    assert (suspect.step, suspect.oracle, suspect.position) == (1, Oracle.LOGPROBS, 0)
    assert suspect.delta == suspect.moved == pytest.approx(0.01)
    assert suspect.bound == LEAST


def test_a_token_parts_within_the_bound_only_at_a_tie() -> None:
    """Both servers may move by the bound, so that a gap up to twice the bound flips a token lawfully."""
    loose = measured(legal(Tail.COLD, 0.05))
    bound = loose.bound(Situation(Tail.COLD))
    assert judge(trace(flipped(1.9 * bound)), trace(tied(1.9 * bound)), loose) == []
    (suspect,) = judge(trace(flipped(2.1 * bound)), trace(tied(2.1 * bound)), loose)
    assert suspect.oracle is Oracle.TOKENS
    assert suspect.delta == 0.0
    assert suspect.moved == pytest.approx(1.05 * bound)
    assert near_tie(trace(flipped(1.9 * bound)), 0, tied(1.9 * bound), loose) is not None
    assert near_tie(trace(flipped(2.1 * bound)), 0, tied(2.1 * bound), loose) is None


def tied(gap: float) -> Observation:
    return answer(position(7, {7: -1.0, 8: -1.0 - gap}), reused=0, computed=5)


def flipped(gap: float) -> Observation:
    """Chose the other token although it shows the same distribution."""
    return answer(position(8, {7: -1.0, 8: -1.0 - gap}), reused=0, computed=5)


def test_a_tie_is_none_where_the_logprobs_moved() -> None:
    assert near_tie(trace(off_by(0.5, token=8)), 0, right(), TIGHT) is None


def test_an_answer_shorter_than_asked_and_than_the_reference_gives_is_ill() -> None:
    short = Trace([step(right(), asked=2)])
    whole = trace(answer(position(7, GOOD), position(7, GOOD), reused=0, computed=5))
    (suspect,) = judge(short, whole, TIGHT)
    assert suspect.oracle is Oracle.HEALTH
    assert "1 tokens for 2 asked" in suspect.reason


def test_tokens_that_both_servers_leave_out_are_no_illness() -> None:
    """llama-server tells no token that is a part of a character only."""
    short = Trace([step(right(), asked=2)])
    assert judge(short, short, TIGHT) == []


def test_an_answer_of_which_tokens_are_missing_is_not_forced_on_the_reference() -> None:
    loose = measured(legal(Tail.COLD, 0.05))
    assert near_tie(trace(flipped(0.5)), 0, tied(0.5), loose) is not None
    assert near_tie(Trace([step(flipped(0.5), asked=2)]), 0, tied(0.5), loose) is None


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
    assert [max(deltas) for _, deltas in samples] == pytest.approx([0.0, 0.01])


def in_band(band: int, delta: float, count: int) -> list[tuple[Situation, Deltas]]:
    deltas = tuple(delta if at == band else 0.0 for at in range(5))
    return [(Situation(Tail.COLD), deltas)] * count


def test_a_band_has_a_bound_of_its_own_once_enough_of_it_moved() -> None:
    noise = measured([*in_band(0, 1e-4, ENOUGH), *in_band(3, 5e-2, ENOUGH), *in_band(1, 1e-3, ENOUGH - 1)])
    limits = noise.limits(Situation(Tail.COLD))
    assert limits[0] == SAFETY * 1e-4
    assert limits[3] == limits[1] == limits[4] == noise.bound(Situation(Tail.COLD)) == SAFETY * 5e-2


def test_certain_tokens_are_held_to_what_certain_tokens_do() -> None:
    """0.01 on a token at -0.1 is no rounding where such tokens move by 1e-4; on one at -2.5 it is."""
    noise = measured([*in_band(0, 1e-4, ENOUGH), *in_band(2, 5e-2, ENOUGH)])
    certain = answer(position(7, {7: -0.09, 8: -2.5}), reused=0, computed=5)
    (suspect,) = judge(trace(certain), trace(right()), noise)
    assert (suspect.oracle, suspect.bound) == (Oracle.LOGPROBS, SAFETY * 1e-4)
    assert suspect.delta == pytest.approx(0.01)
    assert judge(trace(off_by(0.01)), trace(right()), noise) == []


def test_a_band_is_never_wider_than_its_class() -> None:
    noise = measured([*in_band(0, 1e-6, ENOUGH), *in_band(4, 4e-5, 3)])
    assert all(limit <= noise.bound(Situation(Tail.COLD)) for limit in noise.limits(Situation(Tail.COLD)))


def test_bit_identical_samples_leave_the_bands_to_the_class() -> None:
    noise = measured([*in_band(0, 0.0, 500), *in_band(4, 4e-5, 2)])
    assert set(noise.limits(Situation(Tail.COLD))) == {SAFETY * 4e-5}


def test_a_bound_does_not_grow_beyond_what_another_adapter_does() -> None:
    """The rounding of a quantised model times eight would hide the bug itself; there the pairs decide."""
    assert measured(legal(Tail.ONE, 0.2)).bound(Situation(Tail.ONE)) == CAP
    assert measured(legal(Tail.ONE, 0.44)).bound(Situation(Tail.ONE)) == 2 * 0.44


def test_a_near_tie_is_held_to_the_class_of_the_step_that_ran_beside_others() -> None:
    """Overlapped requests round by more: what is rounding to the judge is a tie to whoever compares on."""
    noise = measured([*legal(Tail.COLD, 1e-5), *legal(Tail.COLD, 0.05, beside=True)])
    overlapped = [msgspec.structs.replace(step(flipped(0.3)), span=Span(sent, sent + 2, sent + 4)) for sent in (0, 1)]
    serial = [msgspec.structs.replace(step(flipped(0.3)), span=Span(sent, sent, sent + 1)) for sent in (0, 2)]
    assert near_tie(Trace(overlapped), 0, tied(0.3), noise) is not None
    assert near_tie(Trace(serial), 0, tied(0.3), noise) is None
    assert judge(Trace(overlapped), trace(tied(0.3), tied(0.3)), noise) == []


@pytest.mark.parametrize(("sampling", "suspect"), [("bias", True), ("penalties", True), ("seeded", False)])
def test_tokens_chosen_in_a_way_of_their_own_are_held_to_the_reference_where_nothing_moves(
    sampling: str, suspect: bool
) -> None:
    ours, theirs = (trace(answer(position(token, GOOD), reused=0, computed=5)) for token in (8, 7))
    biased = Trace([msgspec.structs.replace(ours.steps[0], sampling=sampling)])
    assert [one.oracle for one in judge(biased, theirs, TIGHT)] == ([Oracle.TOKENS] if suspect else [])
    assert judge(biased, theirs, measured(legal(Tail.COLD, 0.1))) == []


def test_a_hit_on_what_no_request_of_the_plan_asked_comes_from_outside() -> None:
    def asked(prompt: tuple[int, ...], reused: int, at: int) -> Step:
        spoken = answer(position(7, GOOD), reused=reused, computed=len(prompt) - reused)
        return msgspec.structs.replace(step(spoken, prompt=prompt), span=Span(at, at, at + 1))

    first, grown = asked((9, 1, 2, 3), 0, 0), asked((9, 1, 2, 3, 7, 5), 5, 2)
    assert hits_from_outside(Trace([first, grown])) == []
    assert hits_from_outside(Trace([first, asked((9, 1, 2, 8, 8, 8), 4, 2)])) == [1]
    assert hits_from_outside(Trace([asked((9, 1, 2, 3), 1, 0), grown])) == [0]
