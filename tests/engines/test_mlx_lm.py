"""The real mlx_lm.server: a public bug of its chunked cache, and a model on which it is sound."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from installed import mlx
from running import stalefuzz

from fuzzer.options import ServerOptions
from fuzzer.servers.mlx_lm_engine import MlxInstallation
from fuzzer.servers.mlx_lm_server import cuts_nothing_back

pytestmark = pytest.mark.mlx
PATIENCE_S = 600.0


def test_a_trimmed_chunk_is_reused_for_a_shorter_prompt(tmp_path: Path) -> None:
    """mlx-lm#1494: a trim of a chunked cache takes less than was asked."""
    words = ("--launch", "mlx-lm", "--tiny", "chunked", "--adapter", "none", "--scenario", "conversation")
    run = stalefuzz(
        "run", "-x", *words, "--seed", "1", "--time", "300s", folder=tmp_path, patience_s=PATIENCE_S, env=mlx()
    )
    assert run.status == 1, run.said
    (finding,) = run.record["findings"]
    assert finding["operations"] <= 3
    assert finding["reproduced"] == {"k": 5, "n": 5}
    assert finding["reuse_witnessed"]
    assert {"setting": "--prompt-cache-size 0", "clean": True} in finding["mitigations"]


def test_plain_attention_is_clean(tmp_path: Path) -> None:
    words = ("--launch", "mlx-lm", "--adapter", "none", "--scenario", "plain", "--max-steps", "150")
    run = stalefuzz("run", *words, "--seed", "1", "--time", "300s", folder=tmp_path, patience_s=PATIENCE_S, env=mlx())
    assert run.status == 0, run.said
    assert run.record["reuse"]["hits"] > 20
    assert run.record["target"]["capabilities"]["top_logprobs"] == 10


@pytest.mark.parametrize(
    "words", [("--adapter", "none", "--scenario", "plain"), ("--scenario", "adapter-scale")], ids=["bare", "adapters"]
)
def test_a_hybrid_is_clean(tmp_path: Path, words: tuple[str, ...]) -> None:
    """State-space layers, whose state cannot be cut back: what is reused is a whole stored entry."""
    brief = ("--max-steps", "60", "--seed", "1", "--time", "300s")
    run = stalefuzz(
        "run",
        "--launch",
        "mlx-lm",
        "--tiny",
        "granite",
        *words,
        *brief,
        folder=tmp_path,
        patience_s=PATIENCE_S,
        env=mlx(),
    )
    assert run.status == 0, run.said
    assert run.record["reuse"]["hits"] > 8
    assert "reuses whole entries only" in run.stdout


def test_adapters_are_folders(tmp_path: Path) -> None:
    words = ("--launch", "mlx-lm", "--scenario", "adapter-scale", "--max-steps", "30")
    run = stalefuzz("run", *words, "--seed", "1", "--time", "300s", folder=tmp_path, patience_s=PATIENCE_S, env=mlx())
    assert run.status in (0, 3), run.said
    assert run.record["target"]["capabilities"]["adapters"] == 2
    assert not run.record["suspects"]
    assert not any("by no more than rounding" in why for why in run.record["not_exercised"].values())


@pytest.mark.parametrize(("tiny", "whole"), [("dense", False), ("granite", True)])
def test_whether_a_server_of_the_users_cuts_entries_back_is_tried(
    monkeypatch: pytest.MonkeyPatch, tiny: str, whole: bool
) -> None:
    for name, value in mlx().items():
        monkeypatch.setenv(name, value)
    installation = MlxInstallation(ServerOptions(launch="mlx-lm", tiny=tiny, adapters=()), True)
    with installation.target() as process, closing(installation.connect(process.url)) as server:
        assert cuts_nothing_back(server) is whole
