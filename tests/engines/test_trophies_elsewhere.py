"""The README's findings in engines that have to be installed: each file shows its bug on the version that has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from installed import mlx, sglang, vllm, vllm_with_the_reload_bug
from running import stalefuzz

TROPHIES = Path(__file__).parents[2] / ".github" / "trophies"
PATIENCE_S = 2400.0


@pytest.mark.parametrize(
    ("name", "engine", "environment"),
    [
        pytest.param("mlx-lm-1494", "mlx-lm", mlx, marks=pytest.mark.mlx),
        pytest.param("vllm-42125", "vllm", vllm_with_the_reload_bug, marks=pytest.mark.vllm),
        pytest.param("vllm-48421", "vllm", vllm, marks=pytest.mark.vllm),
        pytest.param("sglang-24638", "sglang", sglang, marks=pytest.mark.sglang),
    ],
)
def test_a_trophy_reproduces(name: str, engine: str, environment: Callable[[], dict[str, str]], tmp_path: Path) -> None:
    words = ("replay", TROPHIES / f"{name}.json", "--launch", engine)
    run = stalefuzz(*words, folder=tmp_path, patience_s=PATIENCE_S, env=environment())
    assert run.status == 1, run.said
    assert run.stdout.startswith("REPRODUCED ")
