"""findings/<id>/: the scripts show the bug on their own, say so by their status, and obey nobody but the reader."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from answering import answering
from real_run import real_finding, real_run
from scripts import PYTEST, environment, pytest_case, shell

from fuzzer.servers.loopback import free_port
from reports.record import RunRecord, WireRequest
from reports.reproduce.scripts import scripts_of


def folder() -> Path:
    return next(path for path in (real_run() / "findings").iterdir() if path.is_dir())


def test_shell_script_shows_the_bug() -> None:
    done = shell(folder() / "repro.sh")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("REPRODUCED: position 1, token ")
    apart = re.search(r"are ([0-9.]+) apart", done.stdout)
    assert apart is not None
    assert float(apart[1]) == pytest.approx(real_finding().max_abs_logprob_delta, rel=0.01)


def test_shell_script_says_when_the_bug_is_gone() -> None:
    done = shell(folder() / "repro.sh", "--cache-ram", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("NOT REPRODUCED")


def test_pytest_case_fails_with_the_bug_and_passes_without() -> None:
    with_bug = pytest_case(folder() / "test_repro.py")
    assert with_bug.returncode == 1, with_bug.stdout
    assert "log probabilities" in with_bug.stdout
    without = pytest_case(folder() / "test_repro.py", SERVER_ARGS="--cache-ram 0")
    assert without.returncode == 0, without.stdout


def test_scripts_use_an_executable_where_there_is_one(tmp_path: Path) -> None:
    """A stand-in for llama-server: the embedded one under the executable's name and flags."""
    server = tmp_path / "llama-server"
    run = f'exec {sys.executable} -P -m fuzzer.servers.embedded "$@"'
    server.write_text(f"#!/bin/sh\nexec 0<>{tmp_path}/open\n{run}\n")
    server.chmod(0o755)
    os.mkfifo(tmp_path / "open")
    done = shell(folder() / "repro.sh", LLAMA_SERVER=str(server), PYTHON="no-python")
    assert done.returncode == 1, done.stdout + done.stderr


def test_scripts_find_the_model_elsewhere(tmp_path: Path) -> None:
    """Sent without the run's folder, they take the files from the environment, or say which ones they need."""
    lone = tmp_path / "a" / "b" / "c"
    shutil.copytree(folder(), lone)
    models = real_run() / "models"
    paths = {"MODEL": "dense.gguf", "ADAPTER_1": "dense-adapter-1.gguf", "ADAPTER_2": "dense-adapter-2.gguf"}
    found = shell(lone / "repro.sh", **{name: str(models / file) for name, file in paths.items()})
    assert found.returncode == 1, found.stderr
    lost = shell(lone / "repro.sh", PYTHON="no-python")
    assert lost.returncode == 2
    assert "set MODEL ADAPTER_1 ADAPTER_2" in lost.stderr


def test_server_that_does_not_start_is_no_verdict(tmp_path: Path) -> None:
    broken = tmp_path / "llama-server"
    broken.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    broken.chmod(0o755)
    done = shell(folder() / "repro.sh", LLAMA_SERVER=str(broken))
    assert done.returncode == 2
    assert "out of order" in done.stderr


def test_issue_text_is_ready_to_send() -> None:
    text = (folder() / "ISSUE.md").read_text()
    for heading in ("## Versions", "## Steps", "## Expected", "## Observed", "## Evidence", "## Workaround"):
        assert heading in text
    assert real_finding().settings.version.split()[0] in text
    assert '"prompt":[' in text
    assert "cache\\-ram 0" in text


EVIL = "'; touch PWNED; echo '$(touch PWNED)`touch PWNED`\nJSON\ntouch PWNED\nPYTHON\n'''\nopen('PWNED', 'w')\n\\"


def hostile(record: RunRecord) -> RunRecord:
    finding = record.findings[0]
    wire = [
        msgspec.structs.replace(request, path="/" + EVIL, body={**request.body, EVIL: EVIL}) for request in finding.wire
    ]
    settings = msgspec.structs.replace(
        finding.settings,
        version=EVIL,
        flags=[EVIL, "--x"],
        model="tiny:dense:" + EVIL,
        adapters=[EVIL],
        embedded={EVIL: (EVIL, EVIL)},
    )
    changed = msgspec.structs.replace(
        finding, title=EVIL, story=[EVIL] * 3, wire=wire, wire_alone=wire[-1], settings=settings
    )
    return msgspec.structs.replace(record, findings=[changed])


def test_nothing_in_a_record_runs(tmp_path: Path) -> None:
    """Whatever a record holds stays data in the scripts: neither parsing nor running them obeys it."""
    scripts = scripts_of(hostile(RunRecord(findings=[real_finding()])).findings[0])
    for name, text in (("repro.sh", scripts.shell), ("test_repro.py", scripts.pytest)):
        (tmp_path / name).write_text(text)
    compile(scripts.pytest, "test_repro.py", "exec")
    url = f"http://127.0.0.1:{free_port()}"
    for command in (["sh", "repro.sh"], [*PYTEST, "test_repro.py"]):
        env = environment(URL=url)
        assert subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, timeout=60, check=False).returncode
    assert not (tmp_path / "PWNED").exists()


def test_issue_text_mentions_nobody() -> None:
    title = "@everyone fixes #1 [x](http://e.x) <b>"
    text = scripts_of(msgspec.structs.replace(real_finding(), title=title, story=["@a #2"] * 3)).issue
    prose = "".join(text.split("```")[::2])
    for markup in ("@everyone", "@a", "#1", "#2", "<b>", "](http", "http://e"):
        assert markup not in prose


@pytest.fixture
def parroting() -> Iterator[str]:
    """A server with OpenAI's format whose answers differ with their history: the bug, boiled down."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            fresh = "cache_salt" in body
            odd = {'token "}:1]': -0.5, "token_id:7": -1.0 if fresh else -3.25, "token_id:9": -4.0}
            logprobs = {"tokens": ['token "}:1]'], "token_logprobs": [-0.5], "top_logprobs": [odd]}
            content = json.dumps({"choices": [{"text": "x", "logprobs": logprobs}], "usage": {}}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_scripts_read_openai_answers(parroting: str, tmp_path: Path) -> None:
    finding = real_finding()
    body = {"prompt": [5, 6], "max_tokens": 1, "logprobs": 3}
    asked = [WireRequest(step, "/v1/completions", body) for step in (1, finding.wrong)]
    alone = WireRequest(finding.wrong, "/v1/completions", {**body, "cache_salt": "x"})
    settings = msgspec.structs.replace(finding.settings, engine="vllm", model="", flags=[], adapters=[])
    scripts = scripts_of(msgspec.structs.replace(finding, wire=asked, wire_alone=alone, settings=settings))
    (tmp_path / "repro.sh").write_text(scripts.shell)
    (tmp_path / "test_repro.py").write_text(scripts.pytest)
    done = shell(tmp_path / "repro.sh", URL=parroting)
    assert done.returncode == 1, done.stderr
    assert "are 2.25 apart" in done.stdout
    assert "2.25 apart" in pytest_case(tmp_path / "test_repro.py", URL=parroting).stdout


@pytest.mark.parametrize("change", ["none", "number", "token"])
def test_scripts_read_lists_of_objects(change: str, tmp_path: Path) -> None:
    """The spelling of chat completions and of mlx-lm."""
    finding = real_finding()
    changes: dict[str, dict[str, Any]] = {"none": {}, "number": {"logprob": -1.25}, "token": {"token": "z"}}

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        likeliest: dict[str, Any] = {"token": 'a"}:1]', "logprob": -0.5, "bytes": [1, 2]}
        chosen = likeliest | ({} if body.get("salt") else changes[change])
        top = [chosen, {"token": "b", "logprob": -3.0}]
        logprobs = {"content": [{**chosen, "top_logprobs": top}]}
        return {"id": "chat", "choices": [{"message": {"content": "[ "}, "logprobs": logprobs}], "usage": {}}

    asked = WireRequest(finding.wrong, "/v1/chat/completions", {"messages": [], "logprobs": True})
    lone = msgspec.structs.replace(asked, body={**asked.body, "salt": "fresh"})
    settings = msgspec.structs.replace(finding.settings, engine="openai-chat", model="", flags=[], adapters=[])
    scripts = scripts_of(msgspec.structs.replace(finding, wire=[asked], wire_alone=lone, settings=settings))
    (tmp_path / "repro.sh").write_text(scripts.shell)
    (tmp_path / "test_repro.py").write_text(scripts.pytest)
    with answering({"/v1/chat/completions": answer, "/health": b""}) as server:
        done = shell(tmp_path / "repro.sh", URL=server.url)
        case = pytest_case(tmp_path / "test_repro.py", URL=server.url)
    assert done.returncode == case.returncode == (0 if change == "none" else 1), done.stderr + case.stdout
    apart = {"none": "are 0 apart at most", "number": "are 0.75 apart", "token": "are 2.5 apart"}[change]
    assert apart in done.stdout


REFUSAL = "Weights were updated, but the cache was not flushed"


@pytest.mark.parametrize(("said", "status"), [(REFUSAL, 0), ("no such folder", 2)])
def test_scripts_make_up_for_a_refusal_as_the_run_did(said: str, status: int, tmp_path: Path) -> None:
    """SGLang loads weights and forgets nothing while a request runs: it is told to once more."""
    finding = real_finding()
    meta = {"output_token_logprobs": [[-0.5, 7, None]], "output_top_logprobs": [[[-0.5, 7, None], [-1.5, 8, None]]]}
    asked = {"input_ids": [5, 6]}
    wire = [
        WireRequest(1, "/generate", asked),
        WireRequest(2, "/update", {"model_path": "other"}, sets=True),
        WireRequest(2, "/flush?timeout=30", {}, sets=True, remedies="Weights were updated"),
        WireRequest(3, "/generate", asked),
    ]
    settings = msgspec.structs.replace(finding.settings, engine="sglang", model="", flags=[], adapters=[])
    scripts = scripts_of(msgspec.structs.replace(finding, wire=wire, wire_alone=wire[-1], settings=settings))
    (tmp_path / "repro.sh").write_text(scripts.shell)
    (tmp_path / "test_repro.py").write_text(scripts.pytest)
    with answering({"/generate": {"meta_info": meta}, "/update": {"message": said}}) as server:
        server.statuses = [200, 400]
        done = shell(tmp_path / "repro.sh", URL=server.url)
        paths = [path for path, _, _ in server.asked]
        server.statuses = [200, 400]
        case = pytest_case(tmp_path / "test_repro.py", URL=server.url)
    assert done.returncode == status, done.stdout + done.stderr
    assert paths[:4] == ["/generate", "/update", "/flush?timeout=30", "/generate"][: 2 if status else 4]
    assert case.returncode == min(status, 1), case.stdout


def test_files_have_the_names_that_the_reader_gives_them(tmp_path: Path) -> None:
    finding, place = real_finding(), "C:\\a&b|c"
    wire = [
        WireRequest(1, "/v1/load", {"kwargs": {"path": "{ADAPTER_1}"}, "name": "{ADAPTER_1}s"}, sets=True),
        WireRequest(finding.wrong, "/v1/completions", {"prompt": "{ADAPTER_1}{MODEL}"}),
    ]
    settings = msgspec.structs.replace(
        finding.settings, engine="vllm", model="sha256:0", adapters=["sha256:1"], flags=[], start=["serve", "{MODEL}"]
    )
    scripts = scripts_of(msgspec.structs.replace(finding, wire=wire, wire_alone=wire[-1], settings=settings))
    (tmp_path / "repro.sh").write_text(scripts.shell)
    (tmp_path / "test_repro.py").write_text(scripts.pytest)
    given = tmp_path / place
    given.touch()
    with answering({"/v1/completions": {"choices": []}}) as server:
        where = {"URL": server.url, "MODEL": str(given), "ADAPTER_1": str(given)}
        shell(tmp_path / "repro.sh", **where)
        pytest_case(tmp_path / "test_repro.py", **where)
        loads = [body for path, _, body in server.asked if path == "/v1/load"]
        asked = [body for path, _, body in server.asked if path == "/v1/completions"]
    assert len(loads) >= 2
    assert all(load == {"kwargs": {"path": str(given)}, "name": "{ADAPTER_1}s"} for load in loads)
    assert all(body == {"prompt": "{ADAPTER_1}{MODEL}"} for body in asked)
