"""Pieces of text that a tokenizer keeps apart, found out by counting."""

from __future__ import annotations

import re

import pytest
from answering import answering

from fuzzer.errors import UnreachableError
from fuzzer.servers.probed_texts import probed_texts, texts_by

URL = "http://127.0.0.1:1"


def words(text: str) -> int:
    """One token a word and one before all; 'water' and what follows it are one."""
    return 1 + len(re.findall(r" \w+", re.sub(r" water \w+", " merged", text)))


def test_words_that_merge_are_left_out() -> None:
    texts, space = texts_by(words, URL)
    assert space.count == len(texts.pieces)
    assert not [piece for piece in texts.pieces if " water" in piece]
    assert len([piece for piece in texts.pieces if " money" in piece]) > 50
    assert words(texts.joined([5, 90, 5])) == 1 + 6


def test_words_that_only_together_cost_what_they_should_are_left_out() -> None:
    costs = {" day": 4, " man": 2, " case": 3, " week": 1, " company": 2}

    def uneven(text: str) -> int:
        return 1 + sum(costs.get(word, 2) for word in re.findall(r" \w+", text))

    texts, _ = texts_by(uneven, URL)
    assert texts.cost == 4
    assert {uneven(piece) for piece in texts.pieces} == {1 + texts.cost}


def test_no_text_is_the_beginning_of_an_earlier_one() -> None:
    """A hybrid on mlx_lm.server 0.32.2 dies of a prompt that is all of an entry (ml-explore/mlx-lm#1215)."""
    asked: list[str] = []

    def counted(text: str) -> int:
        assert not [earlier for earlier in asked if earlier.startswith(text)]
        asked.append(text)
        return words(text)

    texts_by(counted, URL)
    assert len(asked) > 50


def test_a_tokenizer_that_keeps_nothing_apart() -> None:
    with pytest.raises(UnreachableError, match="too few words"):
        texts_by(lambda text: 1, URL)


def test_a_server_that_does_not_count() -> None:
    answers = {"/v1/completions": {"choices": [{"text": "x"}]}}
    with answering(answers) as server, pytest.raises(UnreachableError, match="does not count"):
        probed_texts(server.url, {})
