"""Root tokens are handed out once each, and calibration takes none of those that plans are given."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.roots import RootPool, RootsExhausted, elsewhere
from scenarios.prompts import TokenSpace

SPACE = TokenSpace(4, 40)


POOLS = st.one_of(
    st.builds(RootPool, st.just(SPACE), st.integers(0, 100)), st.builds(elsewhere, st.just(SPACE), st.integers(0, 1000))
)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 6)), max_size=12), POOLS)
def test_each_token_is_handed_out_once(takes: list[tuple[bool, int]], pool: RootPool) -> None:
    seen = list[int]()
    for last, count in takes:
        if count > pool.left:
            with pytest.raises(RootsExhausted):
                pool.take(count)
        elif last:
            with pool.last_first():
                seen += pool.take(count)
        else:
            seen += pool.take(count)
    assert len(set(seen)) == len(seen)
    assert pool.left == SPACE.count - len(seen)
    assert all(SPACE.first <= token < SPACE.first + SPACE.count for token in seen)


@given(st.integers(0, 20), st.integers(0, 100))
def test_what_is_taken_from_the_end_shifts_nothing(taken: int, start: int) -> None:
    pool, untouched = RootPool(SPACE, start), RootPool(SPACE, start)
    with pool.last_first():
        pool.take(taken)
    assert pool.take(10) == untouched.take(10)


def test_runs_that_meet_part_again() -> None:
    """What one run hit of another's does not come back on its next prompts."""
    space = TokenSpace(4, 2044)
    earlier = set(elsewhere(space, 1).take(200))
    met = [number for seed in range(2, 30) for number in _runs_of_met(elsewhere(space, seed).take(400), earlier)]
    assert met
    assert max(met) < 8


def _runs_of_met(roots: tuple[int, ...], earlier: set[int]) -> list[int]:
    return [len(list(group)) for was_met, group in groupby(root in earlier for root in roots) if was_met]
