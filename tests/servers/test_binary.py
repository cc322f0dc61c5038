"""``--binary``: an executable of the user's is launched, watched and ended like the embedded server."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from asking import GONE_SECONDS, complete, get, is_gone_soon

from fuzzer.errors import ServerStartError, UsageError
from fuzzer.servers import loopback
from fuzzer.servers.launched import launch_binary


def script(folder: Path, body: str) -> Path:
    path = folder / "llama-server"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_it_answers_and_ends_like_the_embedded_one(llama_server: Path, model: list[str]) -> None:
    with launch_binary(llama_server, [*model, "-np", "2"]) as server:
        assert get(server, "/props")["total_slots"] == 2
        assert complete(server, 40)["tokens_predicted"] == 1
        assert server.command == (str(llama_server), *model, "--parallel", "2")
    assert server.returncode == -signal.SIGTERM
    assert is_gone_soon(server.pid)


def test_flags_that_we_do_not_know_reach_it_unchanged(llama_server: Path, model: list[str]) -> None:
    with launch_binary(llama_server, ["--from-the-future", "eleven", *model]) as server:
        log = server.log_tail(100)
        assert f"--model {model[1]}" in log
        assert "--host 127.0.0.1" in log
        assert "--from-the-future eleven" in log
        assert server.command[-2:] == ("--from-the-future", "eleven")


def test_it_is_found_in_the_working_folder_and_on_the_path(llama_server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(llama_server.parent)
    assert launch_binary(Path("./llama-server"), []).command == (str(llama_server),)
    monkeypatch.chdir("/")
    monkeypatch.setenv("PATH", str(llama_server.parent))
    assert launch_binary(Path("llama-server"), []).command == (str(llama_server),)


def test_it_comes_back_after_a_crash(llama_server: Path, model: list[str]) -> None:
    with launch_binary(llama_server, [*model, "-np", "1"]) as server:
        killed = server.pid
        os.kill(killed, signal.SIGKILL)
        assert server.wait(GONE_SECONDS) == -signal.SIGKILL
        server.restart()
        assert server.pid != killed
        assert complete(server, 40)["tokens_predicted"] == 1


def test_a_crash_shows_as_the_executables_own_end(tmp_path: Path) -> None:
    crashing = script(tmp_path, "echo 'GGML_ASSERT(false) failed'; kill -SEGV $$")
    with pytest.raises(ServerStartError, match="it was ended by SIGSEGV") as error:
        launch_binary(crashing, []).start()
    assert "GGML_ASSERT(false) failed" in str(error.value)


def test_an_executable_that_refuses_its_flags_is_quoted(tmp_path: Path) -> None:
    refusing = script(tmp_path, "echo 'error: invalid argument: --nonsense' >&2; exit 1")
    with pytest.raises(ServerStartError, match="it exited with status 1") as error:
        launch_binary(refusing, ["--nonsense"]).start()
    assert "error: invalid argument: --nonsense" in str(error.value)


def test_everything_that_it_started_ends_with_it(tmp_path: Path) -> None:
    silent = script(tmp_path, f"sleep 600 & echo $! > {tmp_path / 'pid'}; wait")
    with pytest.raises(ServerStartError, match="did not answer within 1 s"):
        launch_binary(silent, [], start_seconds=1).start()
    assert is_gone_soon(int((tmp_path / "pid").read_text()))


def test_one_that_will_not_stop_is_killed(
    tmp_path: Path, llama_server: Path, model: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuzzer.servers.launched.STOP_SECONDS", 0.05)
    stubborn = script(tmp_path, f"trap '' TERM; {llama_server} \"$@\"; exit")
    with launch_binary(stubborn, model) as server:
        assert get(server, "/health") == {"status": "ok"}
    assert server.returncode == -signal.SIGKILL
    assert is_gone_soon(server.pid)


def test_a_port_that_somebody_takes_meanwhile_is_replaced(
    llama_server: Path, model: list[str], taken_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = [loopback.free_port(), taken_port]
    monkeypatch.setattr(loopback, "is_free", lambda port: True)
    monkeypatch.setattr(loopback, "free_port", ports.pop)
    monkeypatch.setattr(loopback, "HEALTH_SECONDS", 0.05)
    with launch_binary(llama_server, model) as server:
        assert server.url != f"http://127.0.0.1:{taken_port}"
        assert complete(server, 40)["tokens_predicted"] == 1
    assert ports == []


def test_a_path_that_is_no_executable_is_named(tmp_path: Path, files: Path) -> None:
    with pytest.raises(UsageError, match="is not an executable file"):
        launch_binary(tmp_path / "gone", [])
    with pytest.raises(UsageError, match="is not an executable file"):
        launch_binary(files / "notes.gguf", [])
