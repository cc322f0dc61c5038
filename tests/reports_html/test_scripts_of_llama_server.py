"""Scripts of findings in llama-server that sleeps, saves slots or is restarted: they start it themselves."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import stale_wake
from answering import answering
from making import ask, path
from scripted import llama_scripts
from scripts import pytest_case, shell

from scenarios.operations import Reload, ReloadWeights, Restart, Restore, Save, Sleep
from scenarios.plans import Plan
from scenarios.scenario import FALLS_ASLEEP

Run = Callable[..., subprocess.CompletedProcess[str]]
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


ASLEEP = {"/props": {"is_sleeping": True}, "/completion": {}}
RELOADS = (Plan((ask(P, 0.0), ReloadWeights(1), ask(P, 0.0))), Plan((ask(P, 1.0), Reload(0, 1), ask(P, 1.0))))


@pytest.mark.parametrize(
    ("plan", "run", "script", "put"),
    [
        (RELOADS[0], shell, "repro.sh", r"OTHER\\_WEIGHTS in the place of MODEL"),
        (RELOADS[1], pytest_case, "test_repro.py", r"ADAPTER\\_2 in the place of ADAPTER\\_1"),
    ],
    ids=["model", "adapter"],
)
def test_other_files_in_the_places_of_those_that_it_was_started_with(
    plan: Plan, run: Run, script: str, put: str, tmp_path: Path
) -> None:
    """A server that takes up its old state with the new weights is found out, the real one is cleared."""
    (tmp_path / "bin").mkdir()
    stale = str(stale_wake.executable(tmp_path / "bin"))
    with llama_scripts(tmp_path, plan, 3, *FALLS_ASLEEP) as folder:
        assert "/stalefuzz-" not in (folder / script).read_text(), "no place of the run's own servers"
        done = run(folder / script, LLAMA_SERVER=stale)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "log probabilities" in done.stdout
        done = run(folder / script)
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(f"Then put {put}\\.", (folder / "ISSUE.md").read_text())


def test_files_cannot_be_put_in_the_places_of_a_server_that_runs(tmp_path: Path) -> None:
    with llama_scripts(tmp_path, RELOADS[0], 3, *FALLS_ASLEEP) as folder, answering(ASLEEP) as server:
        for run, script in ((shell, "repro.sh"), (pytest_case, "test_repro.py")):
            done = run(folder / script, URL=server.url)
            assert done.returncode != 0
            assert "swapped on the way: leave URL out" in done.stdout + done.stderr


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
