"""Texts of tokens, for servers that take or give text where others have token ids.

A prompt is made of pieces, each of which the server's tokenizer keeps to itself; piece number n is token n to the rest
of the program. What else turns up in an answer gets a number of its own beyond all vocabularies, the same one for the
same text on every server, so that the answers of two servers compare.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from fuzzer.servers.protocol import RequestRefused

_BEYOND = 1 << 32
_MET: dict[int, str] = {}
"""Texts by their number beyond the vocabularies: a memo of a pure function, so that any server can be sent them."""


class Texts:
    """The pieces that prompts are made of, by number."""

    def __init__(self, pieces: Sequence[str], *, cost: int = 1) -> None:
        self.pieces = tuple(pieces)
        self.cost = cost
        """Tokens of every piece, wherever it stands."""
        self._numbers = {piece: number for number, piece in enumerate(self.pieces)}
        self._longest = max(map(len, self.pieces), default=0)

    def joined(self, tokens: Sequence[int]) -> str:
        """The text of a prompt; raises RequestRefused for a token whose text is not known."""
        return "".join(self.text(token) for token in tokens)

    def text(self, token: int) -> str:
        """The text of one token; raises RequestRefused where it is not known."""
        if 0 <= token < len(self.pieces):
            return self.pieces[token]
        if token not in _MET:
            raise RequestRefused(f"the text of token {token} is not known")
        return _MET[token]

    def token(self, text: str) -> int:
        """The number of the token with this name."""
        plain = text.replace("\u0120", " ").replace("\u2581", " ")
        known = self._numbers.get(text, self._numbers.get(plain))
        return named(plain) if known is None else known

    def split(self, text: str) -> list[int]:
        """The tokens of a text, the longest piece first; signs that begin no piece are tokens of their own."""
        tokens: list[int] = []
        at = 0
        while at < len(text):
            length = next((n for n in range(self._longest, 0, -1) if text[at : at + n] in self._numbers), 1)
            piece = text[at : at + length]
            known = self._numbers.get(piece)
            # Not ``token``: text is as it is, where the names of tokens have signs that stand for spaces.
            tokens.append(named(piece) if known is None else known)
            at += length
        return tokens


def named(text: str) -> int:
    """The number of a text that is no piece of a prompt."""
    number = _BEYOND + zlib.crc32(text.encode("utf-8", "surrogatepass"))
    _MET[number] = text
    return number


NO_TEXTS = Texts(())
"""For servers that speak in token ids throughout."""
