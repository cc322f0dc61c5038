"""One real run for all tests here, and records made from it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from reports.record import FindingRecord, RunRecord

Stalefuzz = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def stalefuzz() -> Stalefuzz:
    """Runs the command and gives back status and output."""

    def run(*words: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        import os

        command = [sys.executable, "-P", "-m", "fuzzer.cli", *map(str, words)]
        env = {**os.environ, "GITHUB_STEP_SUMMARY": "", **environment}
        return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=240, check=False)

    return run


@pytest.fixture(scope="session")
def real_run(stalefuzz: Stalefuzz, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that found the adapter-scale bug in the embedded llama-server."""
    out = tmp_path_factory.mktemp("real") / "out"
    done = stalefuzz("run", "-x", "--scenario", "adapter-scale", "--seed", "1", "--time", "120s", "--out", out)
    assert done.returncode == 1, done.stdout + done.stderr
    return out


@pytest.fixture
def record(real_run: Path) -> RunRecord:
    """Its record, to be changed at will."""
    return msgspec.json.decode((real_run / "run.json").read_bytes(), type=RunRecord)


@pytest.fixture
def finding(record: RunRecord) -> FindingRecord:
    """Its finding."""
    return record.findings[0]
