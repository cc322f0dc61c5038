"""The real SGLang scheduler on a CPU: a public bug of its cache key, and a plain model on which it is sound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from installed import sglang
from launched_engine import sleeps_and_loads_other_weights
from running import stalefuzz
from shared_target import SharedTarget

from fuzzer.flight import Flight, counter
from fuzzer.models.hf_folders import hf_folders
from fuzzer.models.hf_tiny import AdapterLayout
from fuzzer.options import ServerOptions
from fuzzer.servers.protocol import Request
from fuzzer.servers.sglang_engine import SglangInstallation
from fuzzer.servers.sglang_server import SglangServer, SglangSetup
from scenarios.operations import Operation, ReloadWeights, Sleep

pytestmark = pytest.mark.sglang
TIME = ("--time", "1800s")
PATIENCE_S = 2400.0


@pytest.fixture(scope="module")
def sglang_url() -> Iterator[str]:
    """An SGLang server of somebody's, which counts its requests, with a tiny model and its two adapters."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sglang().items():
            patch.setenv(name, value)
        installation = SglangInstallation(ServerOptions(launch="sglang", server_flags=("--enable-metrics",)), True)
    with installation.target() as process:
        yield process.url


def completes(client: httpx.Client, number: int) -> httpx.Response:
    asked = {"input_ids": [5 + number % 900, *range(40, 80)], "sampling_params": {"max_new_tokens": 1}}
    return client.post("/generate", json=asked)


def test_a_tenant_key_spelled_like_an_adapter_reaches_its_entries(tmp_path: Path) -> None:
    """sglang#24638: the adapter's id and the tenant key stand in the cache key without a mark of which is which."""
    words = ("--launch", "sglang", "--scenario", "tenant-key", "--seed", "1", *TIME)
    run = stalefuzz("run", "-x", *words, folder=tmp_path, patience_s=PATIENCE_S, env=sglang())
    assert run.status == 1, run.said
    (finding,) = run.record["findings"]
    assert [operation["op"] for operation in finding["plan"]] == ["complete", "complete"]
    assert sorted(operation.get("salt", "") for operation in finding["plan"]) == ["", "a"]
    assert finding["reproduced"] == {"k": 5, "n": 5}


def test_a_plain_model_without_adapters_is_clean(tmp_path: Path) -> None:
    words = ("--launch", "sglang", "--adapter", "none", "--scenario", "plain", "--max-steps", "150", "--seed", "1")
    run = stalefuzz("run", *words, *TIME, folder=tmp_path, patience_s=PATIENCE_S, env=sglang())
    assert run.status == 0, run.said
    assert run.record["reuse"]["hits"] > 20


def test_sleeps_and_other_weights_between_requests_are_clean(tmp_path: Path) -> None:
    sleeps_and_loads_other_weights("sglang", sglang(), tmp_path, PATIENCE_S)


def shared(url: str) -> SharedTarget:
    """Without tenant keys, which show sglang#24638 within thirty steps."""
    return SharedTarget(url, "sglang", TIME[1], PATIENCE_S, ("adapter-scale", "conversation"))


def test_requests_of_others_are_counted(sglang_url: str, tmp_path: Path) -> None:
    shared(sglang_url).counts_requests_of_others(completes, tmp_path)


def test_adapters_loaded_over_each_other_are_given_back_and_no_bug(sglang_url: str, tmp_path: Path) -> None:
    """One server, which is its own reference: under a fresh key it computes with the weights that were loaded last."""
    words = ("--target", sglang_url, "--engine", "sglang", "--allow-admin", "--scenario", "adapter-reload")
    with httpx.Client(base_url=sglang_url) as client:
        before = client.get("/v1/models").json()["data"]
        run = stalefuzz(
            "run", *words, "--max-steps", "100", "--seed", "1", *TIME, folder=tmp_path, patience_s=PATIENCE_S
        )
        after = client.get("/v1/models").json()["data"]
    assert run.status == 0, run.said
    assert run.record["reference"]["mode"] == "bypass"
    assert run.record["reuse"]["hits"] > 5
    assert run.record["exercised"]["reload"] > 1
    assert run.record["others"]["changes"] == {}
    assert {card["id"]: card["root"] for card in after} == {card["id"]: card["root"] for card in before}


def test_adapters_that_others_reload_are_no_bug_of_the_server(sglang_url: str, tmp_path: Path) -> None:
    with httpx.Client(base_url=sglang_url) as client:
        folders = [adapter["lora_path"] for adapter in client.get("/server_info").json()["lora_paths"]]

    def reloads(client: httpx.Client, number: int) -> httpx.Response:
        # Either may be refused: a request that names an adapter which was unloaded loads it again.
        client.post("/unload_lora_adapter", json={"lora_name": "a"})
        client.post("/load_lora_adapter", json={"lora_name": "a", "lora_path": folders[number % 2]})
        return client.get("/model_info")

    shared(sglang_url).blames_nothing_on_reloads(reloads, tmp_path)


ASKED = Request(tuple(range(10, 90)), 2)
LONG = Request(tuple(range(100, 180)), 400)


@pytest.fixture
def server(sglang_url: str) -> Iterator[SglangServer]:
    """The same server to somebody who may do anything with it."""
    folders = hf_folders(ServerOptions(), AdapterLayout.PEFT, "sglang")
    weights = tuple(str(path) for path in folders.weights)
    setup = SglangSetup(vocabulary=folders.vocabulary, weights=weights, admin=True, sleeps=True)
    server = SglangServer(sglang_url, setup)
    yield server
    server.close()


@pytest.mark.parametrize("operation", [Sleep(), ReloadWeights(0)])
@pytest.mark.parametrize("leaving", ["nothing", "one running", "one aborted"])
def test_what_it_was_told_to_forget_is_forgotten(server: SglangServer, operation: Operation, leaving: str) -> None:
    """Whatever runs meanwhile: the scheduler refuses to forget, or dies, while it has requests."""
    server.perform(operation)
    cold, hit = server.complete(ASKED), server.complete(ASKED)
    flight = Flight(server, LONG, counter()) if leaving != "nothing" else None
    if flight is not None:
        flight.await_tokens(2)
    if flight is not None and leaving == "one aborted":
        flight.abort()
    server.perform(operation)
    again = server.complete(ASKED)
    if flight is not None:
        flight.join()
    assert [cold.reused, hit.reused, again.reused] == [0, len(ASKED.prompt) - 1, 0]
    assert again.tokens == cold.tokens


def test_other_weights_answer_otherwise_and_reuse_nothing(server: SglangServer) -> None:
    first = server.complete(ASKED)
    server.perform(ReloadWeights(1))
    other, hit = server.complete(ASKED), server.complete(ASKED)
    server.perform(ReloadWeights(0))
    back = server.complete(ASKED)
    assert (other.reused, hit.reused, back.reused) == (0, len(ASKED.prompt) - 1, 0)
    assert first.tokens == back.tokens != other.tokens
