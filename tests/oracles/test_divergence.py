"""The divergence of distributions of which only the top is known: both bounds are sound and meet on whole lists."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import position

from oracles.comparison import lead
from oracles.divergence import MOST, JensenShannon, jensen_shannon
from oracles.observations import TokenLogprob

weights = st.lists(st.floats(1e-6, 1.0), min_size=8, max_size=8)


def normalised(values: list[float]) -> list[TokenLogprob]:
    total = sum(values)
    return [TokenLogprob(token, math.log(value / total)) for token, value in enumerate(values)]


def top(entries: list[TokenLogprob], count: int) -> list[TokenLogprob]:
    return sorted(entries, key=lambda entry: -entry.logprob)[:count]


def known(ours: list[TokenLogprob], theirs: list[TokenLogprob]) -> JensenShannon:
    divergence = jensen_shannon(ours, theirs)
    assert divergence is not None
    return divergence


def test_a_coin_against_a_certainty() -> None:
    """p = (1/2, 1/2), q = (1, 0): (3/4) ln(4/3) by hand, from H(3/4, 1/4) - H(1/2, 1/2) / 2."""
    fair = [TokenLogprob(0, math.log(0.5)), TokenLogprob(1, math.log(0.5))]
    sure = [TokenLogprob(0, 0.0), TokenLogprob(1, -math.inf)]
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert known(fair, sure).least == pytest.approx(entropy - MOST / 2)
    assert known(fair, sure).most == pytest.approx(entropy - MOST / 2)


def test_lists_that_share_nothing_may_be_anything_up_to_the_most() -> None:
    divergence = known([TokenLogprob(0, math.log(0.6))], [TokenLogprob(1, math.log(0.6))])
    assert divergence.least == 0.0
    assert divergence.most == pytest.approx(MOST)


@given(weights, weights, st.integers(1, 7))
def test_a_list_cut_short_bounds_the_whole_on_both_sides(ours: list[float], theirs: list[float], count: int) -> None:
    left, right = normalised(ours), normalised(theirs)
    whole = known(left, right)
    assert whole.least == pytest.approx(whole.most, abs=1e-9)
    cut = known(top(left, count), top(right, count))
    assert -1e-9 <= cut.least - 1e-9 <= whole.least <= cut.most + 1e-9
    assert cut.most <= MOST


@given(weights)
def test_a_distribution_is_not_apart_from_itself(values: list[float]) -> None:
    assert known(normalised(values), normalised(values)).most == pytest.approx(0.0, abs=1e-9)


def test_without_logprobs_there_is_none() -> None:
    assert jensen_shannon([], [TokenLogprob(0, 0.0)]) is None


def test_the_lead_of_the_likeliest_token() -> None:
    assert lead(position(1, {1: -0.5, 2: -3.0, 3: -1.5})) == pytest.approx(1.0)
    assert lead(position(1, {1: 0.0})) is None
