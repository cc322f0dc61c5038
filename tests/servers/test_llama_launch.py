"""What a launched llama-server is given that the user did not ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzer.model_files import ModelFiles
from fuzzer.servers import llama_launch
from fuzzer.servers.llama_flags import parse_flags
from fuzzer.servers.llama_launch import reference_flags, target_flags
from scenarios.capabilities import ModelShape

FILES = ModelFiles(Path("m.gguf"), (), "m", (), tiny="dense", shape=ModelShape())


@pytest.mark.parametrize(
    ("cores", "user", "exact", "threads"),
    [(8, (), False, 4), (1, (), False, 1), (8, ("-t", "3"), False, 3), (8, (), True, 1)],
)
def test_both_servers_share_the_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int, user: tuple[str, ...], exact: bool, threads: int
) -> None:
    monkeypatch.setattr(llama_launch, "usable_cores", lambda: cores)
    target = target_flags(parse_flags(user), FILES, Path("slots"), exact=exact)
    assert target.settings["--threads"] == threads
    assert reference_flags(target).settings["--threads"] == threads
