"""Servers of our own: they start, answer, end, come back, and say in a sentence why they did not start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from asking import GONE_SECONDS, complete, get, is_gone_soon

from fuzzer.errors import ServerStartError, UsageError
from fuzzer.servers import lifeline, loopback
from fuzzer.servers.launched import LaunchedServer, launch_embedded


def test_it_starts_answers_and_stops(model: list[str]) -> None:
    server = launch_embedded([*model, "-np", "1"])
    assert not server.alive()
    with server:
        assert server.alive()
        assert server.url.startswith("http://127.0.0.1:")
        assert complete(server, 40)["tokens_predicted"] == 1
        assert server.returncode is None
    assert not server.alive()
    assert server.returncode == -signal.SIGTERM
    assert is_gone_soon(server.pid)


_TAKES_SIGTERM = """
import signal, sys
import xllamacpp
from fuzzer.servers import embedded

class Server:
    listening_address = "http://127.0.0.1:1"

    def __init__(self, params):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

xllamacpp.Server = Server
embedded.run(sys.argv[1:])
"""


def test_a_wheel_that_takes_the_signal_for_itself_ends_all_the_same() -> None:
    command = [sys.executable, "-P", "-c", _TAKES_SIGTERM, "--parallel", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        assert json.loads(server.stdout.readline())["pid"] == server.pid
        server.terminate()
        assert server.wait(GONE_SECONDS) == -signal.SIGTERM


def test_the_command_is_what_a_person_would_type(model: list[str]) -> None:
    server = launch_embedded([*model, "-np", "1", "--cache-ram=64"])
    assert server.command == ("llama-server", *model, "--parallel", "1", "--cache-ram", "64")


def test_several_start_at_once_from_threads_that_then_end(model: list[str]) -> None:
    servers = [launch_embedded([*model, "-np", "1"]) for _ in range(3)]
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(LaunchedServer.start, servers))
        assert len({server.url for server in servers}) == 3
        assert all(get(server, "/health") == {"status": "ok"} for server in servers)
    finally:
        for server in servers:
            server.stop()


def test_it_comes_back_after_a_crash_with_its_last_words_kept(model: list[str]) -> None:
    with launch_embedded([*model, "-np", "1"]) as server:
        killed = server.pid
        os.kill(killed, signal.SIGKILL)
        assert server.wait(GONE_SECONDS) == -signal.SIGKILL
        assert not server.alive()
        assert "listening on" in server.log_tail()
        server.restart()
        assert server.pid != killed
        assert complete(server, 40)["tokens_predicted"] == 1


def test_a_restarted_server_remembers_nothing(model: list[str]) -> None:
    with launch_embedded([*model, "-np", "1"]) as server:
        complete(server, 40)
        server.restart()
        assert complete(server, 40)["timings"]["cache_n"] == 0


def test_stopping_twice_or_before_the_start_is_harmless(model: list[str]) -> None:
    server = launch_embedded(model)
    server.stop()
    server.start()
    server.stop()
    server.stop()
    assert "listening on" in server.log_tail(5)


def test_it_keeps_its_port_when_the_flags_fix_one(model: list[str]) -> None:
    port = loopback.free_port()
    with launch_embedded([*model, "--port", str(port)]) as server:
        assert server.url == f"http://127.0.0.1:{port}"
        server.restart()
        assert server.url == f"http://127.0.0.1:{port}"


def test_a_port_in_use_is_named(model: list[str], taken_port: int) -> None:
    with pytest.raises(ServerStartError, match=f"Port {taken_port} is in use: leave --port out"):
        launch_embedded([*model, "--port", str(taken_port)]).start()


def test_a_port_that_is_taken_under_its_nose_is_named_too(
    model: list[str], taken_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loopback, "is_free", lambda port: True)
    with pytest.raises(ServerStartError, match=f"port {taken_port} is in use; leave --port out"):
        launch_embedded([*model, "--port", str(taken_port)]).start()


def test_a_model_that_is_no_gguf_is_named_with_the_last_log_lines(files: Path) -> None:
    with pytest.raises(ServerStartError) as error:
        launch_embedded(["-m", str(files / "notes.gguf")]).start()
    sentence, *log = str(error.value).splitlines()
    assert sentence.startswith(f"llama-server did not start: {files / 'notes.gguf'} is not a GGUF file.")
    assert any("failed to load model" in line for line in log)


def test_an_adapter_of_another_shape_is_named(model: list[str], files: Path) -> None:
    misfit = files / "misfit.gguf"
    with pytest.raises(ServerStartError, match=f"the adapter {misfit} is no LoRA GGUF for this model") as error:
        launch_embedded([*model, "--lora", str(misfit)]).start()
    assert "incorrect shape" in str(error.value)


def test_settings_that_contradict_each_other_show_the_engines_reason(model: list[str]) -> None:
    with pytest.raises(ServerStartError, match="its settings do not fit the model") as error:
        launch_embedded([*model, "-fa", "off", "-ctv", "q8_0"]).start()
    assert "quantized V cache requires flash_attn" in str(error.value)


def test_a_failed_start_leaves_nothing_and_can_be_tried_again(files: Path) -> None:
    server = launch_embedded(["-m", str(files / "notes.gguf")])
    for _ in range(2):
        with pytest.raises(ServerStartError):
            server.start()
        assert not server.alive()


def test_a_server_that_stays_silent_is_given_up(model: list[str]) -> None:
    with pytest.raises(ServerStartError, match="it was silent for 0 s"):
        launch_embedded(model, start_seconds=0).start()


def test_a_missing_file_is_named_before_anything_starts(model: list[str]) -> None:
    with pytest.raises(UsageError, match=r"There is no file gone\.gguf"):
        launch_embedded(["-m", "gone.gguf"])
    with pytest.raises(UsageError, match=r"There is no file gone\.gguf"):
        launch_embedded([*model, "--lora", "gone.gguf"])
    with pytest.raises(UsageError, match="needs a model"):
        launch_embedded([])


def test_it_starts_where_a_folder_named_like_ours_lies(
    model: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fuzzer").mkdir()
    (tmp_path / "fuzzer" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "")
    with launch_embedded(model) as server:
        assert server.alive()


def test_settings_in_the_environment_do_not_reach_it(model: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_ARG_N_PARALLEL", "7")
    monkeypatch.setenv("LLAMA_API_KEY", "secret")
    with launch_embedded([*model, "-np", "2"]) as server:
        assert get(server, "/props")["total_slots"] == 2


def test_the_log_is_cut_when_it_grows_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    log.write_text("x" * 1000)
    read_end, write_end = os.pipe()
    with log.open("ab") as stream:
        monkeypatch.setattr(lifeline, "STDIN", read_end)
        monkeypatch.setattr(lifeline, "STDERR", stream.fileno())
        monkeypatch.setattr(lifeline, "MAX_LOG_BYTES", 999)
        os.write(write_end, b"still here")
        os.close(write_end)
        lifeline.wait()
    os.close(read_end)
    assert log.read_bytes() == b""
