"""Processes that a fork server makes: ours as if we had started them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from running import children, eventually, is_gone

from fuzzer.servers import forking
from fuzzer.servers.child_environment import child_environment
from fuzzer.servers.forking import CannotForkError, ForkedProcess, forked

MODULE = """
import json, os, sys
imported_by = os.getpid()

def run(argv):
    told = {"argv": argv, "parent": os.getppid(), "imported_by": imported_by, "said": os.environ.get("SAID")}
    print(json.dumps(told | {"group": os.getpgrp()}), flush=True)
    sys.stdin.buffer.read()
    print("the end", file=sys.stderr)
    sys.exit(int(argv[0]))
"""


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    (tmp_path / "served.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("import nothing_of_that_name")
    yield child_environment(tmp_path)
    for server in [forking._SERVERS.pop(key) for key in list(forking._SERVERS) if str(tmp_path) in key[1]]:
        server.close()


def told_by(process: ForkedProcess) -> Any:
    return json.loads(process.stdout.readline())


def ended(process: ForkedProcess) -> int:
    process.stdin.close()
    status = process.wait(60)
    process.stdout.close()
    return status


def test_it_is_our_child_and_pays_for_no_import(environment: Mapping[str, str], tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        one = forked("served", ["3", "word"], {**environment, "SAID": "x"}, log.fileno())
        other = forked("served", ["0"], environment, log.fileno())
    told, of_other = told_by(one), told_by(other)
    assert (told["argv"], told["said"], of_other["said"]) == (["3", "word"], "x", None)
    assert told["parent"] == of_other["parent"] == os.getpid()
    assert (told["group"], of_other["group"]) == (one.pid, other.pid)
    assert told["imported_by"] == of_other["imported_by"] not in (one.pid, other.pid)
    assert children(os.getpid())[one.pid].rstrip().endswith("-P -m served 3 word")
    assert one.poll() is None
    assert (ended(one), ended(other)) == (3, 0)
    assert (tmp_path / "log").read_text() == "the end\nthe end\n"
    assert is_gone(one.pid)


def test_a_signal_ends_it(environment: Mapping[str, str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        process = forked("served", ["0"], environment, 2)
        told_by(process)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0)
        if number is signal.SIGTERM:
            process.terminate()
        else:
            os.killpg(process.pid, number)
        assert ended(process) == -number
        process.terminate()


def test_what_cannot_be_imported_is_left_to_the_ordinary_way(environment: Mapping[str, str]) -> None:
    for _ in range(2):
        with pytest.raises(CannotForkError):
            forked("broken", [], environment, 2)


def test_a_fork_server_that_died_has_a_successor(environment: Mapping[str, str]) -> None:
    first = forked("served", ["0"], environment, 2)
    importer = told_by(first)["imported_by"]
    os.kill(importer, signal.SIGKILL)
    eventually(lambda: is_gone(importer), "it is gone")
    second = forked("served", ["0"], environment, 2)
    assert told_by(second)["imported_by"] != importer
    assert (ended(first), ended(second)) == (0, 0)


def test_an_answer_that_nobody_waited_for_is_not_taken_for_the_next(
    environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(BaseException):
        pass

    sends = socket.send_fds

    def interrupted(*words: Any) -> None:
        sends(*words)
        raise Interrupted

    ended(forked("served", ["0"], environment, 2))
    with monkeypatch.context() as patched:
        patched.setattr(socket, "send_fds", interrupted)
        with pytest.raises(Interrupted):
            forked("served", ["5"], environment, 2)
    process = forked("served", ["7"], environment, 2)
    assert told_by(process)["argv"] == ["7"]
    assert ended(process) == 7
