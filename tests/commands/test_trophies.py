"""The README's list of what was found: each finding file there still shows its bug on the server that comes with us."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from running import stalefuzz

from fuzzer.finding_file import plan_of, read_finding
from oracles.evidence import Repeats
from scenarios.capabilities import Capabilities
from scenarios.fitting import lacking
from scenarios.operations import KINDS, Sampling
from scenarios.prompts import TokenSpace

CAN_ALL = Capabilities(
    space=TokenSpace(4, 2044),
    context=4096,
    operations=KINDS,
    samplings=tuple(Sampling),
    adapters=2,
    request_scales=True,
    adapter_names=True,
    salts=True,
    pins=True,
    slots=8,
)
ROOT = Path(__file__).resolve().parents[2]
ALL = sorted((ROOT / ".github" / "trophies").glob("*.json"))
TROPHIES = [path for path in ALL if path.name.startswith("llama.cpp-")]
ELSEWHERE = {
    "mlx-lm-1494": ("mlx-lm", "STALEFUZZ_MLX_PYTHON"),
    "sglang-24638": ("sglang", "STALEFUZZ_SGLANG_PYTHON"),
    "vllm-42125": ("vllm", "STALEFUZZ_VLLM_PYTHON"),
    "vllm-48421": ("vllm", "STALEFUZZ_VLLM_PYTHON"),
}
"""Findings in engines that are not installed with us, and the variable that names their Python."""


@pytest.mark.parametrize("trophy", TROPHIES, ids=lambda path: path.stem)
def test_a_trophy_reproduces(trophy: Path, tmp_path: Path) -> None:
    run = stalefuzz("replay", trophy, folder=tmp_path)
    assert run.status == 1, run.said
    assert run.stdout.startswith("REPRODUCED ")


@pytest.mark.parametrize("trophy", ALL, ids=lambda path: path.stem)
def test_a_trophy_is_a_sound_file(trophy: Path) -> None:
    """It can be read, its plan can be run, and it says how sure it is."""
    finding = read_finding(trophy)
    assert finding.reproduced == Repeats(5, 5)
    assert finding.minimal
    assert finding.settings.model.startswith("tiny:")
    assert lacking(plan_of(finding), CAN_ALL) is None


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_trophy_of_an_engine_that_is_not_here(name: str, tmp_path: Path) -> None:
    engine, variable = ELSEWHERE[name]
    nowhere = {variable: str(tmp_path / "no-python")}
    run = stalefuzz("replay", ROOT / ".github" / "trophies" / f"{name}.json", folder=tmp_path, env=nowhere)
    assert run.status == 3, run.said
    assert run.stdout.startswith("ERROR ")
    assert f"{variable}={nowhere[variable]} is not an executable file" in run.stdout
    assert f"give the path of a Python with {engine}" in run.stdout
    assert "Traceback" not in run.said


def test_every_other_trophy_is_listed_here() -> None:
    assert {path.stem for path in ALL} - {path.stem for path in TROPHIES} == set(ELSEWHERE)


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
