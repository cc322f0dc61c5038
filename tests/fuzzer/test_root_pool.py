"""Root tokens are handed out once each, and calibration takes none of those that plans are given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.roots import RootPool, RootsExhausted
from scenarios.prompts import TokenSpace

SPACE = TokenSpace(4, 40)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 6)), max_size=12), st.integers(0, 100))
def test_each_token_is_handed_out_once(takes: list[tuple[bool, int]], start: int) -> None:
    pool, seen = RootPool(SPACE, start), list[int]()
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
