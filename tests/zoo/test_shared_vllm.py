"""A server of the vllm flavour that others use too."""

from __future__ import annotations

from pathlib import Path

import httpx
from running import stalefuzz
from somebody_else import somebody_else
from zoo_server import serving

from fuzzer.zoo.settings import Flavour, Settings

SHARED = ("--engine", "vllm", "--reference", "bypass", "--max-steps", "30", "--time", "120s", "--seed", "3")
PATIENCE_S = 240.0


def completes(client: httpx.Client, number: int) -> httpx.Response:
    prompt = [5 + number % 900, *range(40, 80)]
    return client.post("/v1/completions", json={"model": "base", "prompt": prompt, "max_tokens": 1, "temperature": 0})


def reloads(client: httpx.Client, number: int) -> httpx.Response:
    adapter = {"lora_name": "a", "lora_path": f"version-{number % 3}", "load_inplace": True}
    return client.post("/v1/load_lora_adapter", json=adapter)


def test_requests_of_others_are_counted(tmp_path: Path) -> None:
    with serving(Settings(Flavour.VLLM, rows=8)) as client:
        url = str(client.base_url)
        (tmp_path / "crowded").mkdir()
        with somebody_else(url, completes):
            crowded = stalefuzz("run", "--target", url, *SHARED, folder=tmp_path / "crowded", patience_s=PATIENCE_S)
        quiet = stalefuzz("run", "--target", url, *SHARED, folder=tmp_path, patience_s=PATIENCE_S)
    assert (crowded.status, quiet.status) == (0, 0), crowded.said + quiet.said
    assert crowded.record["others"]["work"] > 0
    nobody = {"requests": 0, "work": 0, "unit": "requests", "changes": {}}
    assert quiet.record["others"] == {"told_by": "/metrics", **nobody}


def test_adapters_that_others_reload_are_no_bug_of_the_server(tmp_path: Path) -> None:
    with serving(Settings(Flavour.VLLM, rows=8)) as client:
        reloads(client, 0)
        with somebody_else(str(client.base_url), reloads):
            run = stalefuzz("run", "--target", str(client.base_url), *SHARED, folder=tmp_path, patience_s=PATIENCE_S)
    assert run.record["findings"] == []
    assert run.record["others"]["changes"]["the folder of a"] > 0
