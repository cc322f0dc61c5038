"""The composite action, run the way a runner would: its own shell steps, in order, with its inputs as environment."""

from __future__ import annotations

import json
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
    _, run, verdict = scripts()
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
    assert step(scripts()[2], tmp_path, STATUS=status, INCONCLUSIVE=inconclusive).returncode == expected


def test_wrong_usage_is_a_status_too(tmp_path: Path) -> None:
    output = tmp_path / "output"
    done = step(scripts()[1], tmp_path, GITHUB_OUTPUT=str(output), CONFIG="no.toml", ARGS="", OUT="here")
    assert done.returncode == 0
    assert output.read_text() == "status=2\nverdict=\n"


def test_inputs_reach_the_shell_as_environment_only() -> None:
    assert not any("${{" in script for script in scripts())


GATE = """
[run]
time = "60s"
seed = 1
scenarios = ["adapter-scale"]
fail-fast = true
"""


def test_the_documented_workflow_on_a_finding(tmp_path: Path) -> None:
    """Red, with the story in the job's summary and the file that the next step uploads."""
    _, run, verdict = scripts()
    (tmp_path / "stalefuzz.toml").write_text(GATE)
    output, job = tmp_path / "output", tmp_path / "summary"
    more = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(job)}
    done = step(run, tmp_path, CONFIG="stalefuzz.toml", ARGS="", OUT=defaults()["out"], **more)
    assert done.returncode == 0, done.stderr
    assert output.read_text() == "status=1\nverdict=finding\n"
    assert re.search(r"1 new finding.*stalefuzz replay findings/\w+\.json", job.read_text(), re.DOTALL)
    (uploaded,) = re.findall(r"sarif_file: (\S+)", (ACTION / "README.md").read_text())
    (result,) = json.loads((tmp_path / uploaded).read_text())["runs"][0]["results"]
    assert result["level"] == "error"
    assert step(verdict, tmp_path, STATUS="1", INCONCLUSIVE=defaults()["inconclusive"]).returncode == 1


@pytest.mark.parametrize(
    ("package", "place", "installed"),
    [
        ("", ACTION, str(ACTION / "../../..")),
        ("", Path("/somewhere/.github/actions/stalefuzz"), "stalefuzz"),
        ("stalefuzz[bench]", ACTION, "stalefuzz[bench]"),
    ],
)
def test_what_is_installed(package: str, place: Path, installed: str, tmp_path: Path) -> None:
    """A python that tells what it was asked stands in for the runner's."""
    (tmp_path / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "python").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = step(f"PATH={path}\n{scripts()[0]}", tmp_path, PACKAGE=package, GITHUB_ACTION_PATH=str(place))
    assert done.stdout.split() == ["-m", "pip", "install", "--quiet", installed], done.stderr


def defaults() -> dict[str, str]:
    """Each input of the action with its default."""
    inputs = (ACTION / "action.yml").read_text().partition("inputs:\n")[2].partition("outputs:\n")[0]
    found = re.findall(r"(?m)^  ([a-z-]+):\n    description: .*\n    default: (.*)$", inputs)
    assert len(found) == len(re.findall(r"(?m)^  [a-z-]+:$", inputs))
    return {name: value.strip('"') for name, value in found}


def test_every_input_is_documented_and_declared() -> None:
    action, readme = ((ACTION / name).read_text() for name in ("action.yml", "README.md"))
    rows = dict(re.findall(r"(?m)^\| `([a-z-]+)` \| (\S*) ?\|", readme))
    assert {name: value.strip("`") for name, value in rows.items()} == defaults()
    assert set(re.findall(r"inputs\.([a-z-]+)", action)) <= set(defaults())
    assert set(re.findall(r"(?m)^          ([a-z-]+): stalefuzz", readme)) <= set(defaults())
    outputs = re.findall(
        r"(?m)^  ([a-z]+):\n    description: .*\n    value: \$\{\{ steps\.run\.outputs\.\1 \}\}", action
    )
    assert outputs == ["verdict", "status"]


def test_documented_configuration_is_valid() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", (ACTION / "README.md").read_text(), re.DOTALL)
    configuration = msgspec.convert(tomllib.loads(blocks[0]), Configuration)
    assert [target.name for target in configuration.target] == ["release", "wheel"]
