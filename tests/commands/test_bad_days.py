"""Bad days: interrupts, kills, servers that die. Nothing found is lost, and no server outlives its command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from running import (
    Ended,
    children,
    eventually,
    exploring,
    is_gone,
    llama_server,
    reference_among,
    servers_of,
    stalefuzz,
    started,
    target_among,
)

CLEAN_RUN = ("run", "--scenario", "single-scale", "--seed", "4")


def wait_for_exploring(process: subprocess.Popen[str], folder: Path) -> dict[int, str]:
    """The servers of a run that has begun to explore."""
    eventually(lambda: exploring(folder) or process.poll() is not None, "the run explores")
    servers = servers_of(process.pid)
    assert len(servers) == 2, process.communicate()
    return servers


def ended(process: subprocess.Popen[str], folder: Path) -> Ended:
    stdout, stderr = process.communicate()
    return Ended(process.returncode, stdout, stderr, folder / "stalefuzz-out")


def record(folder: Path) -> dict[str, Any]:
    """run.json as it is at the moment."""
    written: dict[str, Any] = json.loads((folder / "stalefuzz-out" / "run.json").read_text())
    return written


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupt_finishes_the_write(number: signal.Signals, tmp_path: Path) -> None:
    with started(*CLEAN_RUN, folder=tmp_path) as process:
        wait_for_exploring(process, tmp_path)
        begun = children(process.pid)
        process.send_signal(number)
        run = ended(process, tmp_path)
    assert run.status == 130
    assert run.record["verdict"] == "inconclusive"
    assert run.record["reasons"][0] == "interrupted"
    assert run.record["steps"] > 0
    assert "Traceback" not in run.said
    assert run.stdout.splitlines()[-1].startswith("  seed 4; ")
    assert len(begun) >= 2
    assert all(is_gone(pid) for pid in begun)


def test_an_interrupt_while_servers_start(tmp_path: Path) -> None:
    with started(*CLEAN_RUN, folder=tmp_path) as process:
        eventually(lambda: servers_of(process.pid) or process.poll() is not None, "a server starts")
        servers = servers_of(process.pid)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    assert process.returncode == 130, stdout + stderr
    assert "Traceback" not in stdout + stderr
    eventually(lambda: all(is_gone(pid) for pid in servers), "the servers are gone")


def test_an_interrupt_of_other_commands(tmp_path: Path) -> None:
    with started("probe", folder=tmp_path) as process:
        eventually(lambda: servers_of(process.pid) or process.poll() is not None, "a server starts")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    assert process.returncode == 130, stdout + stderr
    assert "Traceback" not in stdout + stderr


def test_a_kill_leaves_a_record_and_no_server(tmp_path: Path) -> None:
    with started(*CLEAN_RUN, folder=tmp_path) as process:
        wait_for_exploring(process, tmp_path)
        begun = children(process.pid)
        process.kill()
        process.wait()
        eventually(lambda: all(is_gone(pid) for pid in begun), "what it started is gone")
    left = record(tmp_path)
    assert left["verdict"] == "inconclusive"
    assert left["reasons"] == ["the run did not get to its end"]
    assert left["steps"] > 0


def test_a_target_that_is_killed_once(tmp_path: Path) -> None:
    """No plan explains the death, so it is no finding; but nobody calls such a run clean."""
    with started(*CLEAN_RUN, folder=tmp_path) as process:
        os.kill(target_among(wait_for_exploring(process, tmp_path)), signal.SIGKILL)
        before = record(tmp_path)["steps"]
        eventually(lambda: record(tmp_path)["steps"] > before or process.poll() is not None, "the run goes on")
        process.send_signal(signal.SIGINT)
        run = ended(process, tmp_path)
    assert run.status == 130, run.said
    assert run.record["findings"] == []
    assert run.record["verdict"] == "inconclusive"
    (restarted,) = run.events("restarted")
    if "between two plans" in restarted["why"]:
        assert restarted["why"] in run.record["reasons"]
        return
    assert restarted["why"] == "the target stopped answering (it was ended by SIGKILL) and is started again"
    (suspect,) = run.record["suspects"]
    assert suspect["oracle"] == "health"
    assert suspect["reason"].startswith("no answer: it was ended by SIGKILL; ")


def test_a_reference_that_is_killed_once(tmp_path: Path) -> None:
    """The question is asked again, and the run is as good as any other."""
    with started(*CLEAN_RUN, folder=tmp_path) as process:
        os.kill(reference_among(wait_for_exploring(process, tmp_path)), signal.SIGKILL)
        before = record(tmp_path)["steps"]
        eventually(lambda: len(servers_of(process.pid)) == 2 or process.poll() is not None, "it is started again")
        eventually(lambda: record(tmp_path)["steps"] > before or process.poll() is not None, "the run goes on")
        process.send_signal(signal.SIGINT)
        run = ended(process, tmp_path)
    assert run.status == 130, run.said
    assert [event["why"] for event in run.events("restarted")] == [
        "the reference stopped answering (it was ended by SIGKILL) and is started again"
    ]
    assert run.record["suspects"] == run.record["findings"] == []
    assert run.record["reasons"] == ["interrupted"]


def test_a_server_of_the_users_that_goes_away(tmp_path: Path) -> None:
    with llama_server() as server:
        words = ("run", "--scenario", "single-scale", "--target", server.url)
        with started(*words, folder=tmp_path) as process:
            eventually(lambda: exploring(tmp_path) or process.poll() is not None, "the run explores")
            os.kill(server.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
    assert process.returncode == 3, stdout + stderr
    assert stderr == ""
    assert server.url in stdout
    assert "INCONCLUSIVE" in stdout


def test_a_reader_who_leaves_early_ends_nothing(tmp_path: Path) -> None:
    with started(*CLEAN_RUN, "--max-steps", "50", folder=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.close()
        status = process.wait()
    assert status == 0
    assert record(tmp_path)["verdict"] == "clean"


def test_an_old_record_never_passes_for_a_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "stalefuzz-out"
    folder.mkdir()
    (folder / "run.json").write_text('{"schema": 1, "verdict": "clean"}')
    with started(*CLEAN_RUN, folder=tmp_path) as process:
        eventually(lambda: servers_of(process.pid) or process.poll() is not None, "a server starts")
        process.kill()
        process.wait()
    assert record(tmp_path)["verdict"] == "inconclusive"


def test_no_colour_where_none_is_wanted(tmp_path: Path) -> None:
    coloured = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    assert "\x1b[" in stalefuzz("replay", "missing.json", folder=tmp_path, env=coloured).stdout
    assert "\x1b" not in stalefuzz("replay", "missing.json", folder=tmp_path, env={**coloured, "NO_COLOR": "1"}).stdout
    assert "\x1b" not in stalefuzz("replay", "missing.json", folder=tmp_path).stdout
