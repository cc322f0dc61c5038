"""A server of the vllm flavour that others use too."""

from __future__ import annotations

from pathlib import Path

import httpx
from running import Ended, stalefuzz
from shared_target import SharedTarget, completes, folders, reloads
from zoo_server import serving

from fuzzer.zoo.bugs import Bug
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


def reloaded(bug: Bug | None, folder: Path) -> tuple[Ended, dict[str, str]]:
    """A run on a server of somebody's whose adapters it may load again, and the folders that it left them in."""
    with serving(Settings(Flavour.VLLM, bug=bug, rows=8)) as client:
        for name in "ab":
            adapter = {"lora_name": name, "lora_path": f"folder-of-{name}"}
            client.post("/v1/load_lora_adapter", json=adapter).raise_for_status()
        words = ("--target", str(client.base_url), "--engine", "vllm", "--allow-admin", "--scenario", "adapter-reload")
        run = stalefuzz("run", "-x", *words, "--max-steps", "300", "--seed", "1", folder=folder)
        return run, folders(client)


def test_an_adapter_that_is_loaded_over_needs_no_second_server(tmp_path: Path) -> None:
    run, left = reloaded(Bug.ADAPTER_VERSION_NOT_HASHED, tmp_path)
    assert run.status == 1, run.said
    assert run.record["reference"]["mode"] == "bypass"
    (finding,) = run.record["findings"]
    assert [operation["op"] for operation in finding["plan"]] == ["complete", "reload", "complete"]
    assert finding["kind"] == "key-omits-version"
    assert finding["reproduced"] == {"k": 5, "n": 5}
    assert run.record["others"]["changes"] == {}
    assert left == {"a": "folder-of-a", "b": "folder-of-b"}


def test_adapters_loaded_over_each_other_are_given_back_and_no_bug(tmp_path: Path) -> None:
    run, left = reloaded(None, tmp_path)
    assert run.status == 0, run.said
    assert run.record["reuse"]["hits"] > 10
    assert run.record["exercised"]["reload"] > 2
    assert run.record["others"]["changes"] == {}
    assert left == {"a": "folder-of-a", "b": "folder-of-b"}


def test_what_a_server_that_is_its_own_reference_cannot_show_is_said(tmp_path: Path) -> None:
    """Both answers come from the weights that it kept; nothing of it shows, and the run says so."""
    run, _ = reloaded(Bug.ADAPTER_WEIGHTS_KEPT_BY_NAME, tmp_path)
    assert run.status == 0, run.said
    hidden = {"state that is inherited without reuse", "old weights that stay after others were loaded"}
    assert hidden < set(run.record["not_exercised"])
    assert "old weights that stay after others were loaded" in run.stdout
    assert "versions that a plan replaced later: the target is its own reference" in run.stdout
