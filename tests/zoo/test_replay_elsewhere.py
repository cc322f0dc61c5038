"""One plan, two engines: a finding of a real llama-server is replayed, as it is, on servers in vLLM's manner."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_run import real_finding, real_run
from running import stalefuzz

from scenarios.operations import Complete


@pytest.mark.parametrize(
    ("flags", "result", "status"),
    [
        (("--flavour", "vllm"), "FIXED", 0),
        (("--bug", "block-hash-without-adapter"), "REPRODUCED", 1),
    ],
)
def test_a_finding_of_llama_server_on_another_engine(
    tmp_path: Path, flags: tuple[str, ...], result: str, status: int
) -> None:
    finding = real_finding()
    scales = [scale.scale for asked in finding.plan if isinstance(asked, Complete) for scale in asked.scales or ()]
    assert finding.settings.engine == "llama.cpp"
    assert set(scales) == {0.0, 1.0}, "an adapter there is off or fully on"
    file = real_run() / "findings" / f"{finding.id}.json"
    replayed = stalefuzz("replay", file, "--launch", "zoo", "--", *flags, folder=tmp_path)
    assert replayed.stdout.startswith(result), replayed.said
    assert replayed.status == status
