"""The tiny vocabulary: what other writers of models rely on."""

from __future__ import annotations

from fuzzer.models.vocabulary import BEGIN, END, UNKNOWN, vocabulary


def test_it_has_2048_different_pieces() -> None:
    words = vocabulary()
    assert len(words.pieces) == len(set(words.pieces)) == len(words.scores) == len(words.types) == 2048


def test_special_tokens_come_first() -> None:
    pieces = vocabulary().pieces
    assert (pieces[UNKNOWN], pieces[BEGIN], pieces[END], pieces[3]) == ("<unk>", "<s>", "</s>", "\n")


def test_every_other_piece_can_be_printed() -> None:
    assert all(piece.isprintable() for piece in vocabulary().pieces[4:])


def test_a_word_is_built_from_pieces() -> None:
    pieces = set(vocabulary().pieces)
    assert all(piece[:-1] in pieces for piece in pieces if piece.startswith("\u2581") and len(piece) > 1)


def test_a_smaller_vocabulary_is_the_beginning_of_the_large_one() -> None:
    small = vocabulary(320)
    assert (small.pieces, len(small.types)) == (vocabulary().pieces[:320], 320)
