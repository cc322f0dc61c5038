"""A tokenizer of one code point a token, so that servers that take text alone can be asked for exact tokens.

Byte pairs without merges, nothing split beforehand and nothing normalised: joining the texts of tokens and splitting
them again gives the same tokens.
"""

from __future__ import annotations

from typing import Any

SIZE = 2048
UNKNOWN, BEGIN, END, NEWLINE = 0, 1, 2, 3
_SPECIAL = ("<unk>", "<s>", "</s>")
_FIRST_SIGN = 0x4E00
"""CJK ideographs: printable, in one block, and the same under every Unicode normalisation."""


def pieces() -> tuple[str, ...]:
    """The text of each token, by id."""
    signs = (chr(_FIRST_SIGN + number) for number in range(SIZE - len(_SPECIAL) - 1))
    return (*_SPECIAL, "\n", *signs)


def tokenizer_json() -> dict[str, Any]:
    """The content of tokenizer.json."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_special(number, text) for number, text in enumerate(_SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": _SPECIAL[UNKNOWN],
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {text: number for number, text in enumerate(pieces())},
            "merges": [],
        },
    }


def tokenizer_config_json() -> dict[str, Any]:
    """The content of tokenizer_config.json."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": _SPECIAL[UNKNOWN],
        "bos_token": _SPECIAL[BEGIN],
        "eos_token": _SPECIAL[END],
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 4096,
    }


def _special(number: int, text: str) -> dict[str, Any]:
    return {
        "id": number,
        "content": text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
