"""One real run, made once for all tests that look at what a run leaves behind."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import msgspec
from running import stalefuzz

from reports.record import FindingRecord, RunRecord

SEED = 1


@cache
def real_run() -> Path:
    """The folder of a run that found the adapter-scale bug in the embedded llama-server; not to be changed."""
    folder = Path(tempfile.mkdtemp(prefix="stalefuzz-real-run-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    run = stalefuzz("run", "-x", "--scenario", "adapter-scale", "--seed", str(SEED), "--time", "120s", folder=folder)
    assert run.status == 1, run.said
    return folder / "stalefuzz-out"


def real_record() -> RunRecord:
    """Its record, a new one each time."""
    return msgspec.json.decode((real_run() / "run.json").read_bytes(), type=RunRecord)


def real_finding() -> FindingRecord:
    """Its finding."""
    return real_record().findings[0]
