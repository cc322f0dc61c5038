"""Prompts are paths: equal paths give equal tokens, common prefixes of paths are common prefixes of tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import SPACE, path, prompts, segments

from scenarios.prompts import Prompt, Segment, TokenSpace, common_prefix, prompt_tokens
from scenarios.story import is_prefix

ROOTS = (100, 200, 300)


def tokens(prompt: Prompt) -> tuple[int, ...]:
    return prompt_tokens(prompt, ROOTS, SPACE)


@given(prompts)
def test_a_prompt_is_as_long_as_it_says(prompt: Prompt) -> None:
    assert len(tokens(prompt)) == prompt.length
    assert tokens(prompt)[0] == ROOTS[prompt.root]
    assert all(SPACE.first <= token < SPACE.first + SPACE.count for token in tokens(prompt)[1:])


@given(prompts)
def test_equal_paths_give_equal_tokens(prompt: Prompt) -> None:
    again = Prompt(prompt.root, tuple(Segment(segment.name, segment.length) for segment in prompt.segments))
    assert tokens(again) == tokens(prompt)


@given(prompts, st.lists(segments, max_size=2), st.lists(segments, max_size=2))
def test_common_prefixes_are_common_prefixes(trunk: Prompt, one: list[Segment], other: list[Segment]) -> None:
    left = Prompt(trunk.root, trunk.segments + tuple(one))
    right = Prompt(trunk.root, trunk.segments + tuple(other))
    assert common_prefix(tokens(left), tokens(right)) >= trunk.length


@given(prompts, st.integers(1, 20))
def test_a_shorter_segment_begins_a_longer_one(prompt: Prompt, longer: int) -> None:
    if not prompt.segments:
        return
    *before, last = prompt.segments
    grown = Prompt(prompt.root, (*before, Segment(last.name, last.length + longer)))
    assert tokens(grown)[: prompt.length] == tokens(prompt)
    assert is_prefix(prompt, grown)
    assert not is_prefix(grown, prompt)


@given(prompts, prompts)
def test_what_is_a_prefix_by_its_path_is_one_by_its_tokens(one: Prompt, other: Prompt) -> None:
    if is_prefix(one, other):
        assert tokens(other)[: one.length] == tokens(one)


def test_streams_differ_by_name_and_stay_what_they_were() -> None:
    """Findings of years ago have to replay: these tokens never change."""
    assert tokens(path(0, ("a", 5))) == (100, 565, 1034, 1920, 1845, 720)
    assert tokens(path(0, ("b", 5)))[1:] != tokens(path(0, ("a", 5)))[1:]


def test_roots_tell_prompts_apart() -> None:
    assert common_prefix(tokens(path(0, ("a", 9))), tokens(path(1, ("a", 9)))) == 0
    assert tokens(path(0, ("a", 9)))[1:] == tokens(path(1, ("a", 9)))[1:]


def test_a_smaller_vocabulary_is_respected() -> None:
    narrow = TokenSpace(first=7, count=3)
    assert set(prompt_tokens(path(0, ("a", 200)), (7,), narrow)) == {7, 8, 9}


def test_no_segment_is_longer_than_a_stream() -> None:
    with pytest.raises(ValueError, match="longer than 4096"):
        tokens(path(0, ("a", 4097)))


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_common_prefix(left: list[int], right: list[int]) -> None:
    length = common_prefix(left, right)
    assert left[:length] == right[:length]
    assert length == min(len(left), len(right)) or left[length] != right[length]
