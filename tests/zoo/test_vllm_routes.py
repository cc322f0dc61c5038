"""The vllm flavour speaks the language of vLLM's OpenAI server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from making import path
from zoo_sequences import words
from zoo_server import serving, wait_for_running

from fuzzer.execution import Roots, run_plan
from fuzzer.servers.protocol import Request, RequestRefused
from fuzzer.servers.vllm_server import VllmServer, VllmSetup
from fuzzer.zoo.settings import Flavour, Settings
from oracles.judgement import judge
from oracles.noise import Noise
from oracles.observations import Failure, Observation, Position, with_outcome
from scenarios.environment import Environment
from scenarios.operations import Complete, Operation, Reload, Sleep, Unload
from scenarios.plans import Plan

P = list(words("P", 40))
GREEDY = {
    "model": "base",
    "prompt": P,
    "max_tokens": 3,
    "temperature": 0,
    "logprobs": 2,
    "return_token_ids": True,
    "return_tokens_as_token_ids": True,
}


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with serving(Settings(Flavour.VLLM, rows=8)) as client:
        yield client


def complete(client: httpx.Client, **changes: object) -> Any:
    return client.post("/v1/completions", json={**GREEDY, **changes}).raise_for_status().json()


def cached(answer: Any) -> int:
    count = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert isinstance(count, int)
    return count


def test_a_completion_tells_tokens_logprobs_and_reuse(client: httpx.Client) -> None:
    first, second = complete(client), complete(client)
    assert (cached(first), cached(second)) == (0, 32)
    assert first["choices"] == second["choices"]
    choice = first["choices"][0]
    assert choice["logprobs"]["tokens"] == [f"token_id:{token}" for token in choice["token_ids"]]
    assert choice["prompt_token_ids"] == P
    assert [len(top) for top in choice["logprobs"]["top_logprobs"]] == [2, 2, 2]


def test_the_sampled_token_is_an_extra_entry(client: httpx.Client) -> None:
    choice = complete(client, logit_bias={"5": 100.0})["choices"][0]
    assert choice["token_ids"] == [5, 5, 5]
    assert [len(top) for top in choice["logprobs"]["top_logprobs"]] == [3, 3, 3]


def test_a_negative_count_asks_for_the_whole_vocabulary(client: httpx.Client) -> None:
    assert len(complete(client, logprobs=-1)["choices"][0]["logprobs"]["top_logprobs"][0]) == 2048


def test_a_stream_tells_the_same_in_parts(client: httpx.Client) -> None:
    body = {**GREEDY, "stream": True, "stream_options": {"include_usage": True}}
    with client.stream("POST", "/v1/completions", json=body) as response:
        lines = [line[6:] for line in response.iter_lines() if line]
    events = [json.loads(line) for line in lines[:-1]]
    tokens = [token for event in events for choice in event["choices"] for token in choice["token_ids"]]
    assert tokens == complete(client)["choices"][0]["token_ids"]
    assert events[-1]["usage"]["completion_tokens"] == 3
    assert lines[-1] == "[DONE]"


def test_salts_separate_and_resets_forget(client: httpx.Client) -> None:
    complete(client, cache_salt="x")
    assert cached(complete(client, cache_salt="y")) == 0
    assert cached(complete(client, cache_salt="x")) == 32
    assert client.post("/reset_prefix_cache").json() == {"success": True}
    assert cached(complete(client, cache_salt="x")) == 0


def test_adapters_come_go_and_change(client: httpx.Client) -> None:
    adapter = {"lora_name": "a", "lora_path": "first"}
    assert client.post("/v1/load_lora_adapter", json=adapter).status_code == 200
    assert client.post("/v1/load_lora_adapter", json=adapter).status_code == 400
    assert [card["id"] for card in client.get("/v1/models").json()["data"]] == ["base", "a"]
    first = complete(client, model="a")
    client.post("/v1/load_lora_adapter", json={**adapter, "lora_path": "second", "load_inplace": True})
    second = complete(client, model="a")
    assert cached(second) == 0
    assert first["choices"] != second["choices"] != complete(client)["choices"]
    assert client.post("/v1/unload_lora_adapter", json={"lora_name": "a"}).status_code == 200
    assert client.post("/v1/completions", json={**GREEDY, "model": "a"}).status_code == 404


def test_reloaded_weights_answer_otherwise_and_reuse_nothing(client: httpx.Client) -> None:
    before = complete(client)
    reload = {"method": "reload_weights", "kwargs": {"weights_path": "other"}}
    client.post("/collective_rpc", json=reload).raise_for_status()
    after = complete(client)
    assert cached(after) == 0
    assert before["choices"] != after["choices"]


def test_a_sleeping_server_answers_after_waking(client: httpx.Client) -> None:
    before = complete(client)
    client.post("/sleep").raise_for_status()
    assert client.get("/is_sleeping").json() == {"is_sleeping": True}
    assert client.post("/v1/completions", json=GREEDY).status_code == 503
    client.post("/wake_up").raise_for_status()
    assert complete(client)["choices"] == before["choices"]


def test_the_adapter_puts_it_to_sleep_and_wakes_it(client: httpx.Client) -> None:
    server = VllmServer(str(client.base_url), VllmSetup(vocabulary=2048, admin=True, sleeps=True))
    asked = Request(tuple(P), 2)
    assert "sleep" in server.capabilities.operations
    assert [server.complete(asked).reused for _ in range(2)] == [0, 32]
    server.perform(Sleep())
    assert server.complete(asked).reused == 0
    server.close()


def test_a_server_that_was_not_started_for_it_is_never_put_to_sleep(client: httpx.Client) -> None:
    server = VllmServer(str(client.base_url), VllmSetup(vocabulary=2048, admin=True))
    assert "flush" in server.capabilities.operations
    assert "sleep" not in server.capabilities.operations
    server.close()


def test_a_client_that_leaves_ends_its_request(client: httpx.Client) -> None:
    with client.stream("POST", "/v1/completions", json={**GREEDY, "max_tokens": 400, "stream": True}) as response:
        next(response.iter_lines())
    wait_for_running(client, 0)
    assert 'vllm:request_success_total{finished_reason="abort"} 1' in client.get("/metrics").text


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"model": "nothing"}, 404),
        ({"prompt": []}, 400),
        ({"max_tokens": 600}, 400),
        ({"allowed_token_ids": [4096]}, 400),
        ({"logit_bias": {"word": 1.0}}, 400),
    ],
)
def test_what_cannot_be_served_is_refused_in_json(
    client: httpx.Client, changes: dict[str, object], status: int
) -> None:
    refused = client.post("/v1/completions", json={**GREEDY, **changes})
    assert refused.status_code == status
    assert refused.json()["error"]["message"]


def test_what_follows_a_refused_reload_is_not_judged(client: httpx.Client) -> None:
    """Nobody but the server knows then which weights it answers with."""
    adapter = {"lora_name": "a", "lora_path": "first"}
    client.post("/v1/load_lora_adapter", json=adapter).raise_for_status()
    server = VllmServer(str(client.base_url), VllmSetup(vocabulary=2048, admin=True, paths=("first", "second")))
    client.post("/v1/unload_lora_adapter", json={"lora_name": "a"}).raise_for_status()
    trace = run_plan(server, Plan((Complete(prompt=path(0)), Unload(0, 1), Complete(prompt=path(1)))), Roots((9, 10)))
    server.close()
    asked, unloaded, after = trace.steps
    assert isinstance(unloaded.outcome, Failure)
    assert (asked.environment, after.environment) == (Environment(), None)
    other = with_outcome(trace, 2, Observation([Position(1, [])]))
    assert judge(trace, other, Noise(())) == []


def test_a_plan_says_that_it_could_not_bring_back_the_first_versions(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next plan would be held to weights that the server does not have."""
    adapter = {"lora_name": "a", "lora_path": "first"}
    client.post("/v1/load_lora_adapter", json=adapter).raise_for_status()
    server = VllmServer(str(client.base_url), VllmSetup(vocabulary=2048, admin=True, paths=("first", "second")))
    plan = Plan((Complete(prompt=path(0)), Reload(0, 1)))
    assert run_plan(server, plan, Roots((9,))).unrestored is None
    perform = server.perform

    def refusing(operation: Operation) -> int | None:
        if operation == Reload(0, 0):
            raise RequestRefused("no such path")
        return perform(operation)

    monkeypatch.setattr(server, "perform", refusing)
    trace = run_plan(server, plan, Roots((10,)))
    assert [isinstance(step.outcome, Failure) for step in trace.steps] == [False, False]
    assert trace.unrestored == "no such path"
    server.close()
