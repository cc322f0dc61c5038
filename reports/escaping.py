"""Text of models and servers, made harmless for the place where it is shown."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&-])")


def printable(text: str) -> str:
    """Text without the characters that move a terminal's cursor, change its colours or turn its direction."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def xml_text(text: str) -> str:
    """Text with only the characters that XML 1.0 allows; the XML writer does the rest."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", printable(text))


def markdown(text: str) -> str:
    """One line of plain text: no markup, no mention of a person, no link to another issue."""
    line = " ".join(printable(text).split())
    # A zero-width space parts the sign from the name: GitHub also reads mentions and issue numbers behind a backslash.
    return _MARKDOWN.sub(r"\\\1", line).replace("@", "@\u200b").replace("\\#", "\\#\u200b").replace("://", ":\u200b//")


def code_block(text: str, language: str = "") -> str:
    """A fenced block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence + language, *map(printable, text.splitlines()), fence])


def token_text(text: str) -> str:
    """A token's text with its blanks and control characters visible."""
    shown = text.replace(" ", "\N{OPEN BOX}").replace("\n", "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}")
    return printable(shown.replace("\t", "\N{RIGHTWARDS ARROW}"))
