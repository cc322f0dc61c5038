"""Operations that are no request, as POSTs: in order, to the first refusal, but for what makes up for one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from answering import Answers, answering

from fuzzer.servers.protocol import RequestRefused
from fuzzer.servers.sglang_server import SglangServer, SglangSetup
from fuzzer.servers.vllm_server import Probed, VllmServer, VllmSetup
from scenarios.operations import Flush, Operation, Reload, ReloadWeights, Restart, Sleep, Unload
from scenarios.prompts import TokenSpace

SGLANG = {"/server_info": {"version": "1", "lora_paths": [{"lora_name": "a", "lora_id": "f00d"}]}}
VLLM = {"/version": {"version": "1"}, "/v1/models": {"data": [{"id": "base"}, {"id": "a", "parent": "base"}]}}
ALL: Any = {"paths": ("first", "second"), "weights": ("w0", "w1")}
SLEEP = ["/pause_generation", "/release_memory_occupation", "/resume_memory_occupation", "/continue_generation"]


@pytest.fixture
def canned() -> Iterator[Answers]:
    with answering(SGLANG | VLLM) as server:
        yield server


def sglang(server: Answers) -> SglangServer:
    return SglangServer(server.url, SglangSetup(vocabulary=2048, **ALL))


def posted(server: Answers) -> list[str]:
    return [path for path, _, body in server.asked if body is not None]


@pytest.mark.parametrize(
    ("operation", "paths"),
    [
        (Flush(), ["/flush_cache"]),
        (Sleep(), SLEEP),
        (Reload(0, 1), ["/unload_lora_adapter", "/load_lora_adapter"]),
        (Unload(0, 1), ["/unload_lora_adapter", "/load_lora_adapter"]),
        (ReloadWeights(1), ["/update_weights_from_disk"]),
    ],
)
def test_sglang(operation: Operation, paths: list[str], canned: Answers) -> None:
    with closing(sglang(canned)) as server:
        server.perform(operation)
    assert posted(canned) == paths


@pytest.mark.parametrize(
    ("operation", "paths"),
    [
        (Flush(), ["/reset_prefix_cache"]),
        (Sleep(), ["/sleep?level=1", "/wake_up"]),
        (Reload(0, 1), ["/v1/load_lora_adapter"]),
        (Unload(0, 1), ["/v1/unload_lora_adapter", "/v1/load_lora_adapter"]),
        (ReloadWeights(1), ["/collective_rpc", "/reset_prefix_cache"]),
    ],
)
def test_vllm(operation: Operation, paths: list[str], canned: Answers) -> None:
    probed = Probed(space=TokenSpace(4, 2044), top_logprobs=20, cached_counts=True, dev_operations=())
    with closing(VllmServer(canned.url, VllmSetup(forgets=True, **ALL), probed)) as server:
        server.perform(operation)
    assert posted(canned) == paths


def test_weights_that_were_loaded_while_something_ran_are_followed_by_a_flush(canned: Answers) -> None:
    canned.answers["/update_weights_from_disk"] = {"message": "Weights were updated, but the cache was not flushed"}
    with closing(sglang(canned)) as server:
        canned.statuses = [400]
        server.perform(ReloadWeights(1))
    assert posted(canned) == ["/update_weights_from_disk", "/flush_cache?timeout=30"]


def test_any_other_refusal_is_final(canned: Answers) -> None:
    with closing(sglang(canned)) as server:
        canned.statuses = [400]
        with pytest.raises(RequestRefused):
            server.perform(ReloadWeights(1))
        canned.statuses = [400]
        with pytest.raises(RequestRefused):
            server.perform(Reload(0, 1))
    assert posted(canned) == ["/update_weights_from_disk", "/unload_lora_adapter"]


def test_what_was_paused_goes_on_after_a_refusal(canned: Answers) -> None:
    with closing(sglang(canned)) as server:
        canned.statuses = [200, 400]
        with pytest.raises(RequestRefused):
            server.perform(Sleep())
    assert posted(canned) == [SLEEP[0], SLEEP[1], SLEEP[3]]


def test_what_a_server_cannot_do_is_refused_without_asking(canned: Answers) -> None:
    with closing(sglang(canned)) as server, pytest.raises(RequestRefused):
        server.perform(Restart())
    assert posted(canned) == []
