"""A server of the vllm flavour that others use too."""

from __future__ import annotations

from pathlib import Path

import httpx
from shared_target import SharedTarget, completes, reloads
from zoo_server import serving

from fuzzer.zoo.settings import Flavour, Settings


def another_version(client: httpx.Client, number: int) -> httpx.Response:
    return reloads(client, f"version-{number % 3}")


def test_requests_of_others_are_counted(tmp_path: Path) -> None:
    with serving(Settings(Flavour.VLLM, rows=8)) as client:
        SharedTarget(str(client.base_url), "vllm").counts_requests_of_others(completes, tmp_path)


def test_adapters_that_others_reload_are_no_bug_of_the_server(tmp_path: Path) -> None:
    with serving(Settings(Flavour.VLLM, rows=8)) as client:
        another_version(client, 0)
        SharedTarget(str(client.base_url), "vllm").blames_nothing_on_reloads(another_version, tmp_path)
