"""The composite action, run the way a runner would: its own shell steps, in order, with its inputs as environment."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import msgspec
import pytest
from running import SCRIPT

from fuzzer.configuration import Configuration

ACTION = Path(__file__).resolve().parents[2] / ".github" / "actions" / "stalefuzz"


def scripts() -> list[str]:
    """The text of each ``run: |`` block, without its indentation."""
    blocks = re.findall(r"run: \|\n((?: {8}.*\n)+)", (ACTION / "action.yml").read_text())
    return [re.sub(r"(?m)^ {8}", "", block) for block in blocks]


def step(text: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{SCRIPT.parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_run_step_says_verdict_and_status(tmp_path: Path) -> None:
    run, verdict = scripts()
    output = tmp_path / "output"
    more = {"GITHUB_OUTPUT": str(output), "CONFIG": "", "OUT": "here", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    done = step(run, tmp_path, ARGS="--scenario single-scale --max-steps 30 --seed 2", **more)
    assert done.returncode == 0, done.stderr
    assert output.read_text() == "status=0\nverdict=clean\n"
    assert (tmp_path / "here" / "junit.xml").is_file()
    assert step(verdict, tmp_path, STATUS="0", INCONCLUSIVE="fail").returncode == 0


@pytest.mark.parametrize(
    ("status", "inconclusive", "expected"), [("1", "pass", 1), ("3", "fail", 3), ("3", "pass", 0), ("2", "pass", 2)]
)
def test_last_step_decides(status: str, inconclusive: str, expected: int, tmp_path: Path) -> None:
    assert step(scripts()[1], tmp_path, STATUS=status, INCONCLUSIVE=inconclusive).returncode == expected


def test_wrong_usage_is_a_status_too(tmp_path: Path) -> None:
    output = tmp_path / "output"
    done = step(scripts()[0], tmp_path, GITHUB_OUTPUT=str(output), CONFIG="no.toml", ARGS="", OUT="here")
    assert done.returncode == 0
    assert output.read_text() == "status=2\nverdict=\n"


def test_inputs_reach_the_shell_as_environment_only() -> None:
    assert not any("${{" in script for script in scripts())


def test_documented_configuration_is_valid() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", (ACTION / "README.md").read_text(), re.DOTALL)
    configuration = msgspec.convert(tomllib.loads(blocks[0]), Configuration)
    assert [target.name for target in configuration.target] == ["release", "wheel"]
