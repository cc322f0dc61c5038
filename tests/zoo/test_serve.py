"""The zoo as a child process: one line says where it listens, and the end of its input ends it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from zoo_sequences import words

from fuzzer.zoo.catalogue import MUTANTS
from fuzzer.zoo.mutants import Mutant
from fuzzer.zoo.serve import parse

ROOT = Path(__file__).parents[2]
DEADLINE = 20.0


@contextmanager
def child(*flags: str) -> Iterator[httpx.Client]:
    command = [sys.executable, "-P", "-m", "fuzzer.zoo.serve", *flags]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={"PYTHONPATH": str(ROOT)}) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        announced = process.stdout.readline()
        url = json.loads(announced)["url"]
        assert url.startswith("http://127.0.0.1:")
        with httpx.Client(base_url=url, timeout=DEADLINE) as client:
            yield client
        process.stdin.close()
        assert process.wait(DEADLINE) == 0


def reused_on_repeat(client: httpx.Client) -> int:
    body = {"prompt": list(words("P", 20)), "n_predict": 1, "temperature": 0}
    client.post("/completion", json=body)
    reused = client.post("/completion", json=body).json()["timings"]["cache_n"]
    assert isinstance(reused, int)
    return reused


def test_a_child_serves_until_its_input_ends() -> None:
    with child() as client:
        assert client.get("/health").json() == {"status": "ok"}
        assert reused_on_repeat(client) == 19


def test_a_child_ends_while_a_request_runs() -> None:
    body = {"model": "base", "prompt": list(words("P", 20)), "max_tokens": 490, "stream": True}
    with child("--flavour", "vllm") as client, client.stream("POST", "/v1/completions", json=body) as response:
        assert response.status_code == 200


def test_the_reference_reuses_nothing() -> None:
    with child("--no-cache") as client:
        assert reused_on_repeat(client) == 0


@pytest.mark.parametrize(
    "flags",
    [
        ["--bug", "no-such-bug"],
        ["--bug", "salt-truncated", "--flavour", "llama"],
        ["--chunk", "0"],
        ["--block-size", "many"],
        ["--rows", "-1"],
    ],
)
def test_what_cannot_work_is_refused(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(flags)
    assert flags[1] in capsys.readouterr().err


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_a_bug_brings_the_server_that_it_needs(mutant: Mutant) -> None:
    assert parse(["--bug", mutant.name]) == parse(mutant.flags()) == mutant.settings()
    assert parse(mutant.flags(planted=False)) == mutant.settings(planted=False)
