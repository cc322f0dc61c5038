"""Servers of engines that load folders: what a reference is started without, and what the user's flags still say."""

from __future__ import annotations

import sys

import pytest

from fuzzer.options import ServerOptions
from fuzzer.servers.engine import Engine
from fuzzer.servers.python_engine import without
from fuzzer.servers.sglang_engine import SGLANG
from fuzzer.servers.vllm_engine import VLLM


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (("--seed", "3", "--kv-transfer-config", "{}", "--swap-space", "1"), ("--seed", "3", "--swap-space", "1")),
        (("--kv-transfer-config={}", "--seed", "3"), ("--seed", "3")),
        (("--kv_transfer_config", "{}"), ()),
        (("--kv-transfer-config.kv_connector", "X", "--kv-transfer-config.kv_role=both", "--seed"), ("--seed",)),
        (("--kv-transfer", "x"), ("--kv-transfer", "x")),
    ],
)
def test_a_flag_goes_with_its_values_however_it_is_spelled(flags: tuple[str, ...], kept: tuple[str, ...]) -> None:
    assert without(flags, "--kv-transfer-config", "--other") == kept


@pytest.mark.parametrize(
    ("engine", "variable", "tier"),
    [
        (VLLM, "STALEFUZZ_VLLM_PYTHON", ("--kv-transfer-config", "{}")),
        (SGLANG, "STALEFUZZ_SGLANG_PYTHON", ("--enable-hierarchical-cache",)),
    ],
    ids=lambda value: value.name if isinstance(value, Engine) else None,
)
def test_a_reference_has_no_cache_of_another_tier(
    monkeypatch: pytest.MonkeyPatch, engine: Engine, variable: str, tier: tuple[str, ...]
) -> None:
    monkeypatch.setenv(variable, sys.executable)
    assert engine.install is not None
    installation = engine.install(ServerOptions(launch=engine.name, server_flags=(*tier, "--seed", "7")), True)
    assert installation.reference_of is not None
    target = installation.target().command
    for reference in (installation.reference().command, installation.reference_of(1).command):
        assert tier[0] in target
        assert tier[0] not in reference
        assert target[target.index("--seed") + 1] == reference[reference.index("--seed") + 1] == "7"
