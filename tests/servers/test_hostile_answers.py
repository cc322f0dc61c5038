"""Whatever a server answers, an adapter gives an observation, a refusal or a failure, and never another exception."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from answering import Answers, answering
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzzer.errors import ServerFailure, UsageError
from fuzzer.models import hf_vocabulary
from fuzzer.servers.generic_server import GenericServer
from fuzzer.servers.mlx_lm_server import MlxServer
from fuzzer.servers.profiles import FRESH, OPENAI, Profile
from fuzzer.servers.protocol import Request, RequestRefused, Server
from fuzzer.servers.sglang_server import SglangServer, SglangSetup
from fuzzer.servers.texts import Texts
from fuzzer.servers.vllm_server import VllmServer, VllmSetup
from oracles.observations import Observation, Position
from scenarios.environment import AdapterScale
from scenarios.operations import Sampling
from scenarios.prompts import TokenSpace

CHOICE = {"text": "x", "logprobs": {"tokens": ["x"], "top_logprobs": [{"x": -0.5, "y": -1.5}]}}
USAGE = {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}
COMPLETION = {
    "choices": [CHOICE],
    "usage": USAGE,
    "timings": {"cache_n": 4},
    "system_fingerprint": "0.32.2-0.32.4-Linux-x",
}
META = {
    "prompt_tokens": 7,
    "completion_tokens": 1,
    "cached_tokens": 4,
    "output_token_logprobs": [[-0.5, 9, None]],
    "output_top_logprobs": [[[-0.5, 9, None], [-1.5, 10, None]]],
}
MODELS = {"data": [{"id": "base", "owned_by": "vllm"}, {"id": "a", "parent": "base", "owned_by": "vllm"}]}
HANDSHAKE = {
    "/health": b"",
    "/version": {"version": "1"},
    "/v1/models": MODELS,
    "/v1/completions": lambda body: COMPLETION | {"usage": USAGE | {"prompt_tokens": len(body["prompt"])}},
    "/server_info": {"version": "1", "lora_paths": [{"lora_name": "a", "lora_id": "f00d"}]},
    "/generate": {"meta_info": META},
}
REQUEST = Request((5, 6, 7, 8, 9, 10, 11), 1)


def mlx(url: str) -> Server:
    return MlxServer(url, Texts(hf_vocabulary.pieces()), space=TokenSpace(4, 2044), context=512)


ADAPTERS: dict[str, Callable[[str], Server]] = {
    "vllm": lambda url: VllmServer(url, VllmSetup(vocabulary=2048)),
    "sglang": lambda url: SglangServer(url, SglangSetup(vocabulary=2048)),
    "mlx-lm": mlx,
    "openai": lambda url: GenericServer(url, OPENAI, adapters=("a",)),
    "profile": lambda url: GenericServer(url, Profile(name="acme", bypass={"key": FRESH}, cached="timings.cache_n")),
}
OF_THE_PROMPT = {"prompt_logprobs", "echo", "logprob_start_len"}
"""Fields that ask for logprobs of the prompt, for which a server computes all of it and looks into no cache."""


class Watching:
    """Follows a stream and keeps what came."""

    def __init__(self) -> None:
        self.came: list[Position] = []

    def opened(self, connection: socket.socket) -> None:
        """Nothing to keep."""

    def arrived(self, position: Position) -> None:
        self.came.append(position)


@pytest.fixture(params=ADAPTERS)
def talking(request: pytest.FixtureRequest) -> Iterator[tuple[Answers, Server]]:
    """An adapter, connected, and the server that it talks to."""
    with answering(HANDSHAKE) as answers:
        server = ADAPTERS[request.param](answers.url)
        yield answers, server
        server.close()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def spoilt(draw: st.DrawFn) -> bytes:
    """A right answer with one value replaced, cut off, or no answer at all."""
    whole = draw(st.sampled_from([COMPLETION, {"meta_info": META}]))
    kind = draw(st.sampled_from(["replaced", "cut", "bytes", "value"]))
    if kind == "bytes":
        return draw(st.binary(max_size=80))
    if kind == "value":
        return json.dumps(draw(json_values)).encode()
    text = json.dumps(whole)
    if kind == "cut":
        return text[: draw(st.integers(0, len(text) - 1))].encode()
    part = draw(st.sampled_from(["-0.5", "4", "7", '"x"', "9", "null", "[", '"base"', "1"]))
    return text.replace(part, json.dumps(draw(json_values))).encode()


quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@quick
@given(content=spoilt())
def test_a_spoilt_answer(talking: tuple[Answers, Server], content: bytes) -> None:
    answers, server = talking
    answers.answers[server.path] = content
    with contextlib.suppress(RequestRefused, ServerFailure):
        assert isinstance(server.complete(REQUEST), Observation)


@quick
@given(events=st.lists(spoilt(), max_size=3), ended=st.booleans())
def test_a_spoilt_stream(talking: tuple[Answers, Server], events: list[bytes], ended: bool) -> None:
    answers, server = talking
    lines = [b"data: " + event.replace(b"\n", b" ") for event in events] + ([b"data: [DONE]"] if ended else [])
    answers.answers[server.path] = b"\n\n".join(lines) + b"\n\n"
    with contextlib.suppress(RequestRefused, ServerFailure):
        assert isinstance(server.stream(REQUEST, Watching()), Observation)


def test_a_right_answer(talking: tuple[Answers, Server]) -> None:
    _, server = talking
    answer = server.complete(REQUEST)
    assert (answer.reused, answer.computed) == (4, 3)
    assert [entry.logprob for entry in answer.positions[0].top] == [-0.5, -1.5]


@given(
    prompt=st.lists(st.integers(4, 2047), min_size=1, max_size=20),
    tokens=st.integers(1, 64),
    reuse=st.booleans(),
    sampling=st.sampled_from(Sampling),
    salt=st.sampled_from(["", "tenant-1"]),
)
@quick
def test_a_request_says_what_was_asked(talking: tuple[Answers, Server], prompt: list[int], **fields: Any) -> None:
    _, server = talking
    request = Request(tuple(prompt), **fields)
    body = json.loads(json.dumps(server.body(request)))
    spelled = body.get("prompt", body.get("input_ids"))
    assert spelled == prompt or [ord(sign) - 0x4E00 + 4 for sign in spelled] == prompt
    assert body.get("max_tokens", body.get("sampling_params", {}).get("max_new_tokens")) == request.tokens
    if not request.reuse and server.capabilities.bypass:
        again = json.loads(json.dumps(server.body(request)))
        assert body != again, "a bypass has a key that nobody has used before"


@pytest.mark.parametrize("sampling", Sampling)
def test_no_request_asks_for_logprobs_of_its_prompt(talking: tuple[Answers, Server], sampling: Sampling) -> None:
    _, server = talking
    for reuse in (True, False):
        body = server.body(Request((5, 6), 2, reuse=reuse, sampling=sampling))
        assert not OF_THE_PROMPT.intersection(body)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_salt_separates_tenants(engine: str) -> None:
    with answering(HANDSHAKE) as answers:
        server = ADAPTERS[engine](answers.url)
        bodies = [server.body(Request((5,), 1, salt=salt)) for salt in ("", "tenant-1", "a")]
        server.close()
    keys = [body.get("cache_salt", body.get("extra_key")) for body in bodies]
    assert keys == [None, "tenant-1", "a" if engine == "vllm" else "f00d"]


def test_an_adapter_is_named(talking: tuple[Answers, Server]) -> None:
    _, server = talking
    if not server.capabilities.adapter_names:
        pytest.skip("this adapter knows no adapters until a launcher tells it")
    body = server.body(Request((5,), 1, (AdapterScale(0, 1.0),)))
    assert "a" in (body.get("model"), body.get("lora_path"))


@pytest.mark.parametrize("engine", [VllmServer, SglangServer])
def test_adapters_are_chosen_by_name(engine: Any) -> None:
    setup = VllmSetup if engine is VllmServer else SglangSetup
    with answering(HANDSHAKE) as answers:
        none = engine(answers.url, setup(vocabulary=2048, only=()))
        assert none.capabilities.adapters == 0
        none.close()
        with pytest.raises(UsageError, match="no adapter called 'z'; it has a"):
            engine(answers.url, setup(vocabulary=2048, only=("z",)))
