"""The README's list of what was found: each finding file there still shows its bug on the server that comes with us."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from running import stalefuzz

ROOT = Path(__file__).resolve().parents[2]
TROPHIES = sorted((ROOT / ".github" / "trophies").glob("llama.cpp-*.json"))


@pytest.mark.parametrize("trophy", TROPHIES, ids=lambda path: path.stem)
def test_a_trophy_reproduces(trophy: Path, tmp_path: Path) -> None:
    run = stalefuzz("replay", trophy, folder=tmp_path)
    assert run.status == 1, run.said
    assert run.stdout.startswith("REPRODUCED ")


def test_what_is_wrong_without_its_history_is_another_bug(tmp_path: Path) -> None:
    """A request that is wrong alone says nothing of the request before it, which this file blames."""
    finding = json.loads((ROOT / ".github" / "trophies" / "llama.cpp-28674.json").read_text())
    finding |= {"plan": [{"op": "complete", "prompt": {"root": 1}}, *finding["plan"]], "wrong": 2, "operations": 2}
    file = tmp_path / "0a17ab.json"
    file.write_text(json.dumps(finding))
    run = stalefuzz("replay", file, folder=tmp_path)
    assert run.status == 3, run.said
    assert "wrong without its history too" in run.stdout


def test_the_readme_names_every_trophy() -> None:
    named = set(re.findall(r"stalefuzz replay \.github/trophies/(\S+\.json)", (ROOT / "README.md").read_text()))
    assert named == {path.name for path in (ROOT / ".github" / "trophies").iterdir()}
