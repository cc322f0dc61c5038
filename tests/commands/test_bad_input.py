"""Bad input is one sentence that names the thing and the next step, never a traceback, with the right status."""

from __future__ import annotations

import http.server
import json
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from running import Ended, stalefuzz

from fuzzer.cli import main
from fuzzer.models.tiny import tiny_model


def refused(run: Ended, status: int, *named: str) -> None:
    assert run.status == status, run.said
    assert "Traceback" not in run.said
    for words in named:
        assert words in run.said, run.said


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["run", "--tiem", "3"], ["--tiem"]),
        (["run", "extra"], ["extra"]),
        (["run", "--time", "5x"], ["'5x'", "90s"]),
        (["run", "--time", "0s"], ["'0s'"]),
        (["run", "--time", "inf"], ["'inf'"]),
        (["run", "--max-steps", "0"], ["0"]),
        (["run", "--seed", "-1"], ["-1"]),
        (["run", "--scenario", "nope"], ["'nope'", "adapter-scale"]),
        (["run", "--engine", "nope"], ["'nope'", "llama.cpp"]),
        (["run", "--launch", "nope"], ["'nope'", "llama.cpp"]),
        (["run", "--numerics", "odd"], ["odd"]),
        (["run", "--tiny", "nope"], ["'nope'", "dense"]),
        (["run", "--model", "missing.gguf"], ["missing.gguf"]),
        (["run", "--model", "."], ["."]),
        (["run", "--adapter", "missing.gguf"], ["missing.gguf"]),
        (["run", "--adapter", "none", "--adapter", "x"], ["--adapter none"]),
        (["run", "--binary", "missing"], ["missing"]),
        (["run", "--reference", "bypass"], ["--reference"]),
        (["run", "--target", "localhost"], ["localhost", "http://"]),
        (["run", "--target", "http://[::"], ["http://[::"]),
        (["run", "--target", "http://h:99999999"], ["http://h:99999999"]),
        (["run", "--target", "http://me:secret@x"], ["password"]),
        (["run", "--target", "http://x", "--reference", "y"], ["--reference y"]),
        (["run", "--target", "http://x", "--", "--cache-ram", "0"], ["--target"]),
        (["run", "--cache-ram", "0"], ["--cache-ram", "--"]),
        (["run", "--", "--frobnicate"], ["--frobnicate"]),
        (["run", "--", "--cache-ram"], ["--cache-ram"]),
        (["run", "--", "--cache-ram", "much"], ["--cache-ram", "'much'"]),
        (["run", "--", "--host", "0.0.0.0"], ["0.0.0.0"]),
        (["replay"], ["FILE"]),
        (["nope"], ["nope"]),
    ],
    ids=" ".join,
)
def test_wrong_words(
    words: list[str],
    named: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process, since so many starts of a Python would take a while."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["stalefuzz", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    refused(Ended(ended.value.code, said.out, said.err, tmp_path), 2, *named)


def test_a_file_that_is_no_gguf(tmp_path: Path) -> None:
    (tmp_path / "notes.gguf").write_text("not a model at all")
    refused(stalefuzz("run", "--model", "notes.gguf", folder=tmp_path), 2, "notes.gguf", "GGUF")
    refused(stalefuzz("run", "--adapter", "notes.gguf", folder=tmp_path), 2, "notes.gguf", "GGUF")


def test_a_model_cut_short(tmp_path: Path) -> None:
    whole = tiny_model("dense").path.read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[: len(whole) // 2])
    cut = stalefuzz("run", "--model", "cut.gguf", "--time", "20s", folder=tmp_path)
    assert cut.status in (2, 3)
    refused(cut, cut.status, "cut.gguf")


def test_an_adapter_for_another_shape(tmp_path: Path) -> None:
    adapter = tiny_model("swa").adapters[0]
    run = stalefuzz("run", "--adapter", adapter, folder=tmp_path)
    refused(run, 3, str(adapter), "last log lines")
    assert run.record["verdict"] == "inconclusive"


def test_a_model_given_as_an_adapter(tmp_path: Path) -> None:
    refused(stalefuzz("run", "--adapter", tiny_model("dense").path, folder=tmp_path), 2, "dense.gguf")


def test_a_port_in_use(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        refused(stalefuzz("run", "--", "--port", str(port), folder=tmp_path), 3, str(port), "in use")


def test_an_unreachable_url(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    run = stalefuzz("run", "--target", url, folder=tmp_path)
    refused(run, 3, url)
    assert run.record["verdict"] == "inconclusive"
    assert url in run.record["reasons"][0]


def test_a_url_of_something_else(tmp_path: Path) -> None:
    with some_http_server() as url:
        refused(stalefuzz("run", "--target", url, folder=tmp_path), 3, url, "llama-server")
        refused(stalefuzz("probe", "--target", url, folder=tmp_path), 3, url, "llama-server")


@contextmanager
def some_http_server() -> Iterator[str]:
    """A server that knows nothing of models and answers everything with 404."""

    class Nothing(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nothing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_server_that_dies_at_its_start(tmp_path: Path) -> None:
    binary = executable(tmp_path / "broken-server", "echo 'cannot find my quux' >&2; exit 7")
    refused(
        stalefuzz("run", "--binary", binary, folder=tmp_path), 3, "broken-server", "status 7", "cannot find my quux"
    )


def test_a_binary_that_is_not_executable(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("hello")
    refused(stalefuzz("run", "--binary", "plain.txt", folder=tmp_path), 2, "plain.txt")


def executable(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_an_output_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    refused(stalefuzz("run", "--out", "taken", folder=tmp_path), 2, "taken")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"schema": 1, "id": "ab"}',
        '{"schema": 99, "id": "ab"}',
        '{"schema": "1", "id": 3}',
        "[" * 5000,
        "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
    ],
    ids=["empty", "list", "null", "object", "header", "other-format", "wrong-types", "deep", "latin"],
)
def test_files_that_are_no_findings(content: str, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text(content, encoding="latin-1")
    run = stalefuzz("replay", "odd.json", folder=tmp_path)
    refused(run, 3, "odd.json")
    assert run.stdout.startswith("ERROR ")


def test_a_finding_of_a_later_format_is_named(tmp_path: Path) -> None:
    (tmp_path / "later.json").write_text(json.dumps({"schema": 2, "id": "ab", "more": True}))
    refused(stalefuzz("replay", "later.json", folder=tmp_path), 3, "format 2", "format 1")
