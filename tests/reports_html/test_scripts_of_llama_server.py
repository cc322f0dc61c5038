"""Scripts of findings in llama-server that sleeps, saves slots or is restarted: they start it themselves."""

from __future__ import annotations

from pathlib import Path

from making import ask, path
from scripted import llama_scripts
from scripts import pytest_case, shell

from scenarios.operations import Restart, Restore, Save, Sleep
from scenarios.plans import Plan

P, Q = path(0, ("a", 5)), path(1, ("b", 5))
EVICTED = (ask(P, 0.0), ask(Q, 1.0), ask(P, 1.0))
"""ggml-org/llama.cpp#30129."""


def test_a_slot_saved_before_a_restart(tmp_path: Path) -> None:
    """ggml-org/llama.cpp#25913: a saved slot does not say which scales it was computed at."""
    plan = Plan((EVICTED[0], Save(0), Restart(), EVICTED[1], Restore(0), EVICTED[2]))
    with llama_scripts(tmp_path, plan, 6) as folder:
        shows_the_bug(folder, "--no-cache-prompt")


def test_a_server_that_sleeps_first(tmp_path: Path) -> None:
    with llama_scripts(tmp_path, Plan((Sleep(), *EVICTED)), 4, "--sleep-idle-seconds", "3") as folder:
        shows_the_bug(folder, "--cache-ram", "0")


def test_a_restart_cannot_be_asked_of_a_server_that_runs(tmp_path: Path) -> None:
    plan = Plan((EVICTED[0], Save(0), Restart(), EVICTED[1], Restore(0), EVICTED[2]))
    with llama_scripts(tmp_path, plan, 6) as folder:
        done = shell(folder / "repro.sh", URL="http://127.0.0.1:9")
    assert done.returncode == 2


def shows_the_bug(folder: Path, *without: str) -> None:
    """Both scripts fail, and pass with the flags without which there is no bug."""
    done = shell(folder / "repro.sh")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("REPRODUCED: position 1")
    done = shell(folder / "repro.sh", *without)
    assert done.returncode == 0, done.stdout + done.stderr
    with_bug, gone = (pytest_case(folder / "test_repro.py", SERVER_ARGS=" ".join(words)) for words in ((), without))
    assert with_bug.returncode == 1, with_bug.stdout
    assert "log probabilities" in with_bug.stdout
    assert gone.returncode == 0, gone.stdout
