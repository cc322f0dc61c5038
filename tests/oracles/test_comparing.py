"""Comparison of top-k lists: sound for tokens that one list lacks, blind to what servers write for impossible."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import answer, position

from oracles.bands import BANDS, NOTHING, band_of
from oracles.comparison import FLOOR, apart, compare, preference
from oracles.observations import TokenLogprob

lists = st.dictionaries(st.integers(0, 8), st.floats(-30, 0), min_size=1, max_size=5)


def entries(values: dict[int, float]) -> list[TokenLogprob]:
    return [TokenLogprob(token, value) for token, value in values.items()]


def delta(ours: dict[int, float], theirs: dict[int, float]) -> float:
    return max(apart(entries(ours), entries(theirs)))


def test_a_missing_token_is_bounded_by_the_last_of_the_list() -> None:
    """Comparing shared tokens only shows 0 here; token 3 has to be at least 3 away from its own value."""
    assert delta({1: -0.5, 3: -1.0}, {1: -0.5, 2: -4.0}) == pytest.approx(3.0)


def test_tokens_that_change_places_at_the_tail_say_little() -> None:
    assert delta({1: -0.5, 3: -4.01}, {1: -0.5, 2: -4.0}) == pytest.approx(0.01)


def test_disjoint_lists_are_far_apart() -> None:
    assert delta({1: -0.1, 2: -3.0}, {3: -0.1, 4: -3.0}) == pytest.approx(2.9)


@pytest.mark.parametrize("impossible", [-3.4e38, -math.inf, -21.0])
def test_what_is_impossible_is_equal(impossible: float) -> None:
    assert delta({1: 0.0, 2: impossible}, {1: 0.0, 2: FLOOR}) == 0.0
    assert delta({1: 0.0, 2: -5.0}, {1: 0.0, 2: impossible}) == pytest.approx(15.0)


@given(lists, lists)
def test_each_token_counts_as_stated(ours: dict[int, float], theirs: dict[int, float]) -> None:
    def floored(values: dict[int, float]) -> dict[int, float]:
        return {token: max(value, FLOOR) for token, value in values.items()}

    left, right = floored(ours), floored(theirs)
    shared = [abs(left[token] - right[token]) for token in left.keys() & right.keys()]
    mine = [left[token] - min(right.values()) for token in left.keys() - right.keys()]
    other = [right[token] - min(left.values()) for token in right.keys() - left.keys()]
    assert delta(ours, theirs) == max([0.0, *shared, *mine, *other])


@given(lists, lists)
def test_it_does_not_matter_who_is_asked_first(ours: dict[int, float], theirs: dict[int, float]) -> None:
    assert delta(ours, theirs) == delta(theirs, ours) >= 0.0


@given(lists, st.randoms())
def test_the_order_of_a_list_does_not_matter(values: dict[int, float], random: Random) -> None:
    shuffled = entries(values)
    random.shuffle(shuffled)
    assert apart(entries(values), shuffled) == NOTHING


@given(st.dictionaries(st.integers(0, 30), st.floats(-15, 0), min_size=6, max_size=30), st.data())
def test_a_list_cut_short_never_overstates(full: dict[int, float], data: st.DataObject) -> None:
    """The bound for missing tokens is a lower bound: with the whole vocabulary the difference is at least as large."""
    moved = {token: min(0.0, value + data.draw(st.floats(-2, 2))) for token, value in full.items()}
    assert delta(top(full, 4), top(moved, 4)) <= delta(full, moved) + 1e-9


def top(values: dict[int, float], count: int) -> dict[int, float]:
    return dict(sorted(values.items(), key=lambda pair: -pair[1])[:count])


def test_answers_are_compared_up_to_where_they_part() -> None:
    same, other = {7: -0.1, 8: -2.0}, {7: -2.0, 8: -0.1}
    comparison = compare(
        answer(position(7, same), position(7, same), position(7, same)),
        answer(position(7, same), position(8, other), position(8, other)),
    )
    assert len(comparison.deltas) == 2
    assert comparison.parted == 1
    assert comparison.gap == pytest.approx(1.9)
    assert comparison.first_above((1e-4,) * len(BANDS)) == 1
    assert comparison.delta == pytest.approx(1.9)


def test_answers_without_logprobs_still_show_where_they_part() -> None:
    comparison = compare(answer(position(7, {})), answer(position(8, {})))
    assert (comparison.parted, comparison.delta, comparison.gap) == (0, 0.0, 0.0)


def test_an_empty_answer_compares_to_nothing() -> None:
    assert compare(answer(), answer(position(1, {1: 0.0}))).delta == 0.0


def test_preference_for_an_unlisted_token_is_a_lower_bound() -> None:
    assert preference(position(1, {1: -0.5, 2: -1.5}), 2) == pytest.approx(1.0)
    assert preference(position(1, {1: -0.5, 2: -1.5}), 99) == pytest.approx(1.0)


def test_a_difference_counts_in_the_band_of_the_likelier_value() -> None:
    moved = apart(entries({1: -0.01, 2: -2.0, 3: -9.0}), entries({1: -0.02, 2: -2.5, 3: -7.0}))
    assert moved == pytest.approx((0.01, 0.0, 0.5, 2.0, 0.0))


def test_a_missing_token_counts_in_its_own_band() -> None:
    moved = apart(entries({1: -0.5, 3: -2.0}), entries({1: -0.5, 2: -4.0}))
    assert moved == pytest.approx((0.0, 0.0, 2.0, 0.0, 0.0))


@pytest.mark.parametrize(("logprob", "band"), [(0.0, 0), (-0.1, 0), (-0.11, 1), (-1.0, 1), (-7.9, 3), (FLOOR, 4)])
def test_bands(logprob: float, band: int) -> None:
    assert band_of(logprob) == band
