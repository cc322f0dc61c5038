"""What a server says cannot move the cursor, change colours or fake our own lines."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from reports.escaping import printable
from reports.events import Restarted, Started
from reports.terminal import Terminal


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    shown = printable(text)
    assert len(shown) == len(text)
    assert not any(character < " " and character not in "\n\t" for character in shown)
    assert "\x7f" not in shown
    assert not any("\x80" <= character <= "\x9f" for character in shown)


@pytest.mark.parametrize(
    "text", ["\x1b[2J\x1b[H", "\x9b31m", "a\rFINDING", "\x07", "\x1b]0;title\x07", "[bold]x[/bold]"]
)
def test_a_server_cannot_write_to_the_terminal(text: str) -> None:
    written = io.StringIO()
    with Terminal(Console(file=written, force_terminal=False, width=200), Path("out")) as terminal:
        terminal.event(Started(0.0, text))
        terminal.event(Restarted(0.0, text))
    shown = written.getvalue()
    assert not set(shown) & {"\x1b", "\x9b", "\r", "\x07"}
    if text.startswith("[bold]"):
        assert shown.splitlines() == [text, text]
