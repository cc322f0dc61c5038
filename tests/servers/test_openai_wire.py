"""What OpenAI-style servers answer, and what becomes of answers that are none."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fuzzer.models import hf_vocabulary
from fuzzer.servers.http import decode
from fuzzer.servers.openai_server import adapter_named
from fuzzer.servers.openai_wire import Completion, observation_of, positions_of
from fuzzer.servers.protocol import Request, RequestRefused
from fuzzer.servers.texts import NO_TEXTS, Texts
from scenarios.environment import AdapterScale

TINY = Texts(hf_vocabulary.pieces())

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
FIELDS = (
    "choices",
    "usage",
    "text",
    "logprobs",
    "content",
    "tokens",
    "top_logprobs",
    "token_ids",
    "cached_tokens",
    "id",
)


def answer(**choice: Any) -> bytes:
    usage = {"prompt_tokens": 70, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 64}}
    return msgspec.json.encode({"choices": [choice], "usage": usage})


def positions(content: bytes, texts: Texts = NO_TEXTS, *, most: int = 5) -> Any:
    return positions_of(decode(content, Completion).choices[0], texts, greedy=True, most=most)


def test_lists_by_token_id() -> None:
    """vLLM with return_tokens_as_token_ids: keys of the lists are ids."""
    lists = {"tokens": ["token_id:7", "token_id:9"], "top_logprobs": [{"token_id:7": -0.5, "token_id:8": -1.0}, None]}
    first, second = positions(answer(logprobs=lists, text="xy", token_ids=[7, 9]))
    assert (first.token, [entry.id for entry in first.top]) == (7, [7, 8])
    assert (second.token, second.top) == (9, [])


def test_the_extra_entry_of_a_sampled_token_is_no_bound() -> None:
    lists = {"tokens": ["a"], "top_logprobs": [{"b": -0.1, "c": -0.2, "a": -9.0}]}
    (only,) = positions(answer(logprobs=lists), most=2)
    assert [entry.logprob for entry in only.top] == [-0.1, -0.2]


def test_the_likeliest_token_is_the_one_that_was_chosen() -> None:
    """mlx-lm's own id is that of the first entry of an unsorted list."""
    top = [{"id": 5, "token": "a", "logprob": -3.0}, {"id": 6, "token": "b", "logprob": -0.2}]
    (only,) = positions(answer(logprobs={"content": [{"id": 5, "token": "a", "logprob": -3.0, "top_logprobs": top}]}))
    assert only.token == 6


def test_text_alone_gives_tokens_without_lists() -> None:
    tokens = [10, 11, 900]
    found = positions(answer(text=TINY.joined(tokens)), TINY)
    assert [position.token for position in found] == tokens


def test_counts() -> None:
    usage = decode(answer(text=""), Completion).usage
    assert (observation_of([], usage, tells=True).reused, observation_of([], usage, tells=True).computed) == (64, 6)
    assert observation_of([], usage, tells=False).reused is None


@pytest.mark.parametrize("value", ["1e999", "-1e999", "NaN", "Infinity"])
def test_a_logprob_that_is_no_number_is_refused(value: str) -> None:
    content = answer(logprobs={"tokens": ["a"], "top_logprobs": [{"a": 0.25}]}).replace(b"0.25", value.encode())
    with pytest.raises(RequestRefused):
        positions(content)


@given(st.lists(st.integers(0, hf_vocabulary.SIZE - 1), max_size=40))
def test_a_prompt_in_text_comes_back_token_by_token(tokens: list[int]) -> None:
    assert TINY.split(TINY.joined(tokens)) == tokens


@given(st.text(max_size=20))
@example("\u0120")
@example("\u2581 x")
def test_any_text_of_an_answer_can_be_sent_back(text: str) -> None:
    assert TINY.joined(TINY.split(text)) == text


@given(st.binary(max_size=60) | json_values.map(lambda value: repr(value).encode()))
def test_bytes_that_are_no_answer_are_refused(content: bytes) -> None:
    with contextlib.suppress(RequestRefused):
        decode(content, Completion)


@given(st.dictionaries(st.sampled_from(FIELDS), json_values | st.dictionaries(st.sampled_from(FIELDS), json_values)))
def test_a_choice_of_any_shape_is_read_or_refused(choice: dict[str, Any]) -> None:
    with contextlib.suppress(RequestRefused):
        positions(msgspec.json.encode({"choices": [choice], "usage": None}), TINY)


@given(st.integers(0, 400))
def test_a_truncated_answer_is_refused(length: int) -> None:
    whole = answer(logprobs={"tokens": ["a"], "top_logprobs": [{"a": -0.5, "b": -1.5}]}, text="a")
    with pytest.raises(RequestRefused):
        decode(whole[: min(length, len(whole) - 1)], Completion)


@pytest.mark.parametrize("scales", [(AdapterScale(0, 0.5),), (AdapterScale(0, 1.0), AdapterScale(1, 1.0))])
def test_what_a_model_name_cannot_say_is_refused(scales: tuple[AdapterScale, ...]) -> None:
    with pytest.raises(RequestRefused):
        adapter_named(Request((1,), 1, scales))


def test_adapters_that_are_off_are_not_named() -> None:
    assert adapter_named(Request((1,), 1, (AdapterScale(0, 0.0), AdapterScale(1, 1.0, 1)))) == (1, 1)
    assert adapter_named(Request((1,), 1, None)) is None
