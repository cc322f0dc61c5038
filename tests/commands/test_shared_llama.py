"""A llama-server that others use too: they are noticed, and nothing that they do is called a bug of the server."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from running import Ended, llama_server, stalefuzz
from somebody_else import somebody_else

BRIEF = ("--max-steps", "60", "--time", "120s", "--seed", "3", "-x")
PATIENCE_S = 240.0


def completes(client: httpx.Client, number: int) -> httpx.Response:
    prompt = [5 + number % 900, *range(40, 60)]
    return client.post("/completion", json={"prompt": prompt, "n_predict": 2, "temperature": 0})


def sets_scales(client: httpx.Client, number: int) -> httpx.Response:
    return client.post("/lora-adapters", json=[{"id": 0, "scale": 0.25 + number % 3}, {"id": 1, "scale": 0.5}])


def fuzzed(url: str, folder: Path, *words: str) -> Ended:
    folder.mkdir()
    return stalefuzz("run", "--target", url, *BRIEF, *words, folder=folder, patience_s=PATIENCE_S)


@pytest.mark.parametrize("flags", [("--metrics",), ()], ids=["metrics", "slots"])
def test_requests_of_others_are_noticed(tmp_path: Path, flags: tuple[str, ...]) -> None:
    # By its slots a server tells only who used them last: that takes some looks, and a run on a fast machine has few.
    runs = 1 if flags else 3
    words = ("--scenario", "conversation", "--max-steps", "200" if flags else "400")
    with llama_server("-np", "2", "--cache-ram", "0", *flags) as server:
        with somebody_else(server.url, completes):
            for number in range(runs):
                crowded = fuzzed(server.url, tmp_path / f"crowded{number}", *words)
                if crowded.record["others"]["requests"]:
                    break
        quiet = fuzzed(server.url, tmp_path / "quiet", *words)
    others = crowded.record["others"]
    assert others["told_by"] == ("/metrics" if flags else "/slots")
    if not flags and not others["requests"]:
        pytest.skip("their requests were in no slot that was looked at")
    assert others["requests"] > 0
    assert (others["work"] > 0) == bool(flags)
    assert "somebody else used the target" in crowded.stdout
    assert "somebody else used the target" in (crowded.out / "report.html").read_text()
    assert [event["why"] for event in crowded.events("shared")] == ["somebody else sends requests to the target too"]
    assert crowded.record["reuse"]["hits"] > 0
    nobody = {"requests": 0, "work": 0, "unit": "tokens", "changes": {}}
    # It may come to prompts of the run before.
    assert quiet.record["others"] | {"earlier": 0} == {"told_by": others["told_by"], **nobody, "earlier": 0}
    assert "somebody else" not in quiet.said
    assert {crowded.status, quiet.status} == {0}, crowded.said + quiet.said


def test_scales_that_others_set_are_no_bug_of_the_server(tmp_path: Path) -> None:
    words = ("--allow-admin", "--scenario", "global-scale")
    with llama_server("--cache-ram", "0") as server:
        with somebody_else(server.url, sets_scales):
            crowded = fuzzed(server.url, tmp_path / "crowded", *words)
        quiet = fuzzed(server.url, tmp_path / "quiet", *words)
    assert crowded.record["findings"] == []
    assert crowded.record["exercised"]["set_scales"] > 0
    assert sum(crowded.record["others"]["changes"].values()) > 0
    assert "somebody else changed the global scale of adapter a" in crowded.stdout
    # Left alone, the server shows a bug of its own in the same plans (ggml-org/llama.cpp#26207).
    assert quiet.record["others"]["changes"] == {}
    assert [finding["reproduced"] for finding in quiet.record["findings"]] == [{"k": 5, "n": 5}]
