"""One seed gives the same draws, whatever else was imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_CONSTANTS = range(1_000, 60_000, 997)
_PROGRAM = """
import importlib, json, sys
from contextlib import nullcontext
from hypothesis import given, seed, settings, strategies as st
from fuzzer.steady_draws import steady_draws

how, *modules = sys.argv[1:]
for module in modules:
    importlib.import_module(module)
numbers = []

@settings(max_examples=200, database=None)
@seed(1)
@given(st.integers(0, 100_000))
def collect(number):
    numbers.append(number)

with steady_draws() if how == "steady" else nullcontext():
    collect()
print(json.dumps(numbers))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the user's with a module that is full of numbers."""
    (tmp_path / "numbers_of_mine.py").write_text(f"NUMBERS = {list(_CONSTANTS)}\n")
    (tmp_path / "draw.py").write_text(_PROGRAM)
    return tmp_path


def _drawn(folder: Path, *arguments: str) -> list[int]:
    """In a process of its own: Hypothesis keeps what it has found for as long as it lives."""
    ended = subprocess.run(
        [sys.executable, "draw.py", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    numbers = json.loads(ended.stdout)
    assert isinstance(numbers, list)
    return numbers


def test_an_import_changes_nothing(folder: Path) -> None:
    assert _drawn(folder, "steady", "numbers_of_mine") == _drawn(folder, "steady")


def test_an_import_changes_what_hypothesis_draws_by_itself(folder: Path) -> None:
    with_numbers = _drawn(folder, "plain", "numbers_of_mine")
    assert set(with_numbers) & set(_CONSTANTS)
    assert with_numbers != _drawn(folder, "plain")
