"""The real vLLM server on a CPU: a public bug of adapter reloads, and a plain model on which it is sound."""

from __future__ import annotations

from pathlib import Path

import pytest
from installed import vllm, vllm_with_the_reload_bug
from running import stalefuzz

from fuzzer.options import ServerOptions
from fuzzer.servers.protocol import Request
from fuzzer.servers.vllm_engine import VllmInstallation
from scenarios.operations import Sleep

pytestmark = pytest.mark.vllm
TIME = ("--time", "1800s")
PATIENCE_S = 2400.0


def test_a_reloaded_adapter_answers_with_the_blocks_of_the_old_one(tmp_path: Path) -> None:
    """vllm#42125: cached blocks are keyed by the adapter's name, and the name outlives the weights."""
    words = ("--launch", "vllm", "--scenario", "adapter-reload", "--seed", "1", *TIME)
    run = stalefuzz("run", "-x", *words, folder=tmp_path, patience_s=PATIENCE_S, env=vllm_with_the_reload_bug())
    assert run.status == 1, run.said
    (finding,) = run.record["findings"]
    assert [operation["op"] for operation in finding["plan"]] == ["complete", "reload", "complete"]
    assert finding["reproduced"] == {"k": 5, "n": 5}
    assert finding["reuse_witnessed"]
    assert finding["max_abs_logprob_delta"] > 1
    assert {"setting": "a fresh cache_salt", "clean": True} in finding["mitigations"]


def test_a_plain_model_without_adapters_is_clean(tmp_path: Path) -> None:
    words = ("--launch", "vllm", "--adapter", "none", "--scenario", "plain", "--max-steps", "150", "--seed", "1", *TIME)
    run = stalefuzz("run", *words, folder=tmp_path, patience_s=PATIENCE_S, env=vllm())
    assert run.status == 0, run.said
    assert run.record["reuse"]["hits"] > 10
    assert run.record["target"]["capabilities"]["block"] == 32


def test_a_server_that_slept_has_forgotten_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in vllm().items():
        monkeypatch.setenv(name, value)
    installation = VllmInstallation(ServerOptions(launch="vllm", adapters=()), True)
    with installation.target() as process:
        server = installation.connect(process.url)
        asked = Request(tuple(range(10, 90)), 2)
        cold, hit = server.complete(asked), server.complete(asked)
        server.perform(Sleep())
        woken, again = server.complete(asked), server.complete(asked)
        server.close()
    assert [answer.reused for answer in (cold, hit, woken, again)] == [0, 64, 0, 64]
    assert woken.positions == cold.positions
