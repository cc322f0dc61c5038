"""Runs the scripts of a finding the way whoever got them does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fuzzer.servers.loopback import free_port

PYTEST = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def environment(**more: str) -> dict[str, str]:
    """An environment without a llama-server, so that the wheel is used, and without stalefuzz in the way."""
    return {**os.environ, "PYTHON": sys.executable, "LLAMA_SERVER": "no-such-server", **more}


def shell(script: Path, *flags: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(script), *flags],
        env=environment(PORT=str(free_port()), **more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def pytest_case(case: Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = [*PYTEST, "--rootdir", str(case.parent), str(case)]
    return subprocess.run(command, env=environment(**more), capture_output=True, text=True, timeout=120, check=False)
