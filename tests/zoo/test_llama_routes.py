"""The llama flavour speaks llama-server's language."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from zoo_sequences import words
from zoo_server import serving

from fuzzer.zoo.settings import Settings
from fuzzer.zoo.text import detokenise

P = list(words("P", 20))
GREEDY = {"prompt": P, "n_predict": 3, "temperature": 0, "n_probs": 5, "return_tokens": True}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with serving(Settings(rows=2)) as client:
        yield client


def test_a_completion_tells_tokens_logprobs_and_reuse(client: httpx.Client) -> None:
    client.post("/completion", json=GREEDY)
    answer = client.post("/completion", json=GREEDY).json()
    assert answer["timings"] == {"cache_n": 19, "prompt_n": 1, "predicted_n": 3}
    assert answer["content"] == detokenise(answer["tokens"])
    assert [len(position["top_logprobs"]) for position in answer["completion_probabilities"]] == [5, 5, 5]
    assert [position["id"] for position in answer["completion_probabilities"]] == answer["tokens"]
    assert all(
        position["logprob"] == position["top_logprobs"][0]["logprob"] for position in answer["completion_probabilities"]
    )
    assert answer["stop_type"] == "limit"


def test_a_stream_tells_the_same_in_parts(client: httpx.Client) -> None:
    whole = client.post("/completion", json=GREEDY).json()
    with client.stream("POST", "/completion", json={**GREEDY, "stream": True}) as response:
        events = [json.loads(line[6:]) for line in response.iter_lines() if line]
    assert [token for event in events for token in event["tokens"]] == whole["tokens"]
    assert [event["stop"] for event in events] == [False, False, False, True]
    assert events[-1]["timings"]["predicted_n"] == 3


def test_the_server_tells_its_sizes(client: httpx.Client) -> None:
    props = client.get("/props").json()
    assert (props["total_slots"], props["default_generation_settings"]["n_ctx"]) == (2, 512)
    assert client.get("/v1/models").json()["data"][0]["meta"]["n_vocab"] == 2048


def test_no_tokens_may_be_asked_for(client: httpx.Client) -> None:
    answer = client.post("/completion", json={**GREEDY, "n_predict": 0}).json()
    assert answer["tokens"] == []
    assert answer["timings"]["predicted_n"] == 0


def test_text_prompts_are_tokenised(client: httpx.Client) -> None:
    text = client.post("/detokenize", json={"tokens": P}).json()["content"]
    assert client.post("/tokenize", json={"content": text}).json() == {"tokens": P}
    by_text = client.post("/completion", json={**GREEDY, "prompt": text}).json()
    assert by_text["tokens"] == client.post("/completion", json=GREEDY).json()["tokens"]


def test_a_request_without_adapters_takes_the_global_scales(client: httpx.Client) -> None:
    client.post("/lora-adapters", json=[{"id": 1, "scale": 0.5}])
    listed = client.get("/lora-adapters").json()
    assert [(adapter["id"], adapter["scale"]) for adapter in listed] == [(0, 0.0), (1, 0.5)]
    unnamed = client.post("/completion", json=GREEDY).json()
    named = client.post("/completion", json={**GREEDY, "lora": [{"id": 1, "scale": 0.5}]}).json()
    none = client.post("/completion", json={**GREEDY, "lora": []}).json()
    assert unnamed["completion_probabilities"] == named["completion_probabilities"] != none["completion_probabilities"]


def test_slots_are_pinned_saved_restored_and_erased(client: httpx.Client) -> None:
    pinned = {**GREEDY, "id_slot": 1}
    assert client.post("/completion", json=pinned).json()["id_slot"] == 1
    saved = client.post("/slots/1?action=save", json={"filename": "f"}).json()["n_saved"]
    assert client.post("/slots/1?action=erase").json()["n_erased"] == saved == 22
    assert client.post("/completion", json=pinned).json()["timings"]["cache_n"] == 0
    client.post("/slots/1?action=erase")
    assert client.post("/slots/1?action=restore", json={"filename": "f"}).json()["n_restored"] == saved
    assert client.post("/completion", json=pinned).json()["timings"]["cache_n"] == 19
    assert [slot["is_processing"] for slot in client.get("/slots").json()] == [False, False]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/completion", {"prompt": [5000]}, 400),
        ("/completion", {"prompt": []}, 400),
        ("/completion", {"prompt": [1] * 600}, 400),
        ("/completion", {"prompt": [1], "lora": [{"id": 7, "scale": 1}]}, 400),
        ("/completion", {"prompt": [1], "id_slot": 9}, 400),
        ("/completion", {"prompt": {"no": "prompt"}}, 400),
        ("/completion", {"prompt": [1], "logit_bias": [[5000, 1.0]]}, 400),
        ("/slots/9?action=erase", None, 400),
        ("/slots/0?action=restore", {"filename": "none"}, 400),
        ("/nowhere", None, 404),
    ],
)
def test_what_cannot_be_served_is_refused_in_json(client: httpx.Client, path: str, body: object, status: int) -> None:
    refused = client.post(path, json=body)
    assert refused.status_code == status
    assert refused.json()["error"]["message"]


def test_bias_penalties_and_seed_shape_the_choice(client: httpx.Client) -> None:
    biased = client.post("/completion", json={**GREEDY, "logit_bias": [[5, 100.0]]}).json()
    assert biased["tokens"] == [5, 5, 5]
    penalised = {**GREEDY, "logit_bias": [[5, 60.0], [6, 60.0]], "presence_penalty": 50.0}
    assert set(client.post("/completion", json=penalised).json()["tokens"][:2]) == {5, 6}
    drawn = [
        client.post("/completion", json={**GREEDY, "temperature": 2.0, "seed": seed}).json()["tokens"]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
