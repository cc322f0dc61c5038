"""The vllm flavour's routes, as vLLM's OpenAI server has them in development mode."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import msgspec

from fuzzer.zoo.adapters import BASE_MODEL, NamedAdapters
from fuzzer.zoo.app import App, EventStream, HttpRequest, Refused, Reply, Routes, event, json_reply
from fuzzer.zoo.block_cache import BlockCache
from fuzzer.zoo.driver import Driver
from fuzzer.zoo.engine import Engine
from fuzzer.zoo.model import Network
from fuzzer.zoo.requests import Request
from fuzzer.zoo.settings import Settings
from fuzzer.zoo.text import detokenise, outside, tokenise
from fuzzer.zoo.vllm_format import CompletionBody, chunk, closing, error, whole


class LoadAdapter(msgspec.Struct):
    lora_name: str
    lora_path: str
    load_inplace: bool = False


class UnloadAdapter(msgspec.Struct):
    lora_name: str


class RemoteCall(msgspec.Struct):
    method: str
    kwargs: dict[str, str] = {}


class VllmServer:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._cache = BlockCache(settings)
        self._engine = Engine(settings, Network(settings.shape), self._cache)
        self._driver = Driver(self._engine)
        self._adapters = NamedAdapters(settings.bug, settings.weights)
        self._numbers = count()
        self._sleeping = False
        # One request must fit into the pool, or it would wait for ever.
        self._context = min(settings.shape.context, settings.blocks * settings.block_size)

    def app(self) -> App:
        routes: Routes = {
            ("POST", "/v1/completions"): self._completion,
            ("GET", "/v1/models"): self._models,
            ("GET", "/v1/load_lora_adapter"): self._for_posts_only,
            ("POST", "/v1/load_lora_adapter"): self._load,
            ("POST", "/v1/unload_lora_adapter"): self._unload,
            ("POST", "/reset_prefix_cache"): self._reset,
            ("POST", "/sleep"): self._sleep,
            ("POST", "/wake_up"): self._wake_up,
            ("GET", "/is_sleeping"): self._is_sleeping,
            ("POST", "/collective_rpc"): self._remote_call,
            ("POST", "/tokenize"): self._tokenise,
            ("POST", "/detokenize"): self._detokenise,
            ("GET", "/version"): self._version,
            ("GET", "/health"): self._health,
            ("GET", "/metrics"): self._metrics,
        }
        return App(routes, error)

    async def _completion(self, request: HttpRequest) -> Reply | EventStream:
        if self._sleeping:
            raise Refused(503, "the server sleeps; wake it first")
        body = msgspec.json.decode(request.body, type=CompletionBody)
        asked = self._request(body)
        number = next(self._numbers)
        if body.stream:
            return EventStream(self._stream(number, asked, body))
        async with self._driver.running(asked) as ticket:
            await ticket.answer()
        return json_reply(whole(number, ticket.run, body))

    async def _stream(self, number: int, asked: Request, body: CompletionBody) -> AsyncIterator[bytes]:
        sent = 0
        async with self._driver.running(asked) as ticket:
            async for portion in ticket.tokens():
                yield event(chunk(number, ticket.run, portion, sent, body))
                sent += len(portion)
        if body.stream_options is not None and body.stream_options.include_usage:
            yield event(closing(number, ticket.run, body))
        yield b"data: [DONE]\n\n"

    def _request(self, body: CompletionBody) -> Request:
        vocabulary = self._settings.shape.vocabulary
        tokens = tokenise(body.prompt, vocabulary) if isinstance(body.prompt, str) else body.prompt
        if not tokens or outside((*tokens, *body.sampling().named_tokens), vocabulary):
            raise Refused(400, "the prompt is empty, or a token id lies outside the vocabulary")
        if body.max_tokens < 1 or len(tokens) + body.max_tokens > self._context:
            raise Refused(400, f"This model's maximum context length is {self._context} tokens")
        resolved = self._adapters.resolve(body.model, body.cache_salt)
        if resolved is None:
            raise Refused(404, f"The model `{body.model}` does not exist.")
        return Request(tuple(tokens), body.max_tokens, *resolved, sampling=body.sampling())

    async def _for_posts_only(self, _: HttpRequest) -> Reply:
        raise Refused(405, "Method Not Allowed")

    async def _models(self, _: HttpRequest) -> Reply:
        cards = [{"id": BASE_MODEL, "object": "model", "root": self._adapters.weights, "max_model_len": self._context}]
        for name, adapter in self._adapters.loaded.items():
            cards.append({"id": name, "object": "model", "root": adapter.path, "parent": BASE_MODEL})
        return json_reply({"object": "list", "data": cards})

    async def _load(self, request: HttpRequest) -> Reply:
        body = msgspec.json.decode(request.body, type=LoadAdapter)
        if not self._adapters.load(body.lora_name, body.lora_path, in_place=body.load_inplace):
            raise Refused(400, f"The lora adapter '{body.lora_name}' has already been loaded.")
        return _text(f"Success: LoRA adapter '{body.lora_name}' added successfully.")

    async def _unload(self, request: HttpRequest) -> Reply:
        name = msgspec.json.decode(request.body, type=UnloadAdapter).lora_name
        if not self._adapters.unload(name):
            raise Refused(404, f"The lora adapter '{name}' cannot be found.")
        return _text(f"Success: LoRA adapter '{name}' removed successfully.")

    async def _reset(self, _: HttpRequest) -> Reply:
        return json_reply({"success": self._cache.flush()})

    async def _sleep(self, _: HttpRequest) -> Reply:
        if not self._engine.idle:
            raise Refused(400, "requests are running")
        self._cache.sleep()
        self._sleeping = True
        return _text("")

    async def _wake_up(self, _: HttpRequest) -> Reply:
        self._sleeping = False
        return _text("")

    async def _is_sleeping(self, _: HttpRequest) -> Reply:
        return json_reply({"is_sleeping": self._sleeping})

    async def _remote_call(self, request: HttpRequest) -> Reply:
        call = msgspec.json.decode(request.body, type=RemoteCall)
        if call.method != "reload_weights" or "weights_path" not in call.kwargs:
            raise Refused(400, "the only method is reload_weights, with kwargs.weights_path")
        self._adapters.reload_weights(call.kwargs["weights_path"])
        return json_reply({"results": [None]})

    async def _tokenise(self, request: HttpRequest) -> Reply:
        prompt = msgspec.json.decode(request.body, type=dict[str, object]).get("prompt", "")
        tokens = tokenise(str(prompt), self._settings.shape.vocabulary)
        return json_reply({"tokens": tokens, "count": len(tokens), "max_model_len": self._context})

    async def _detokenise(self, request: HttpRequest) -> Reply:
        tokens = msgspec.json.decode(request.body, type=dict[str, list[int]])["tokens"]
        return json_reply({"prompt": detokenise(tokens)})

    async def _version(self, _: HttpRequest) -> Reply:
        return json_reply({"version": "zoo"})

    async def _health(self, _: HttpRequest) -> Reply:
        return _text("")

    async def _metrics(self, _: HttpRequest) -> Reply:
        counters = self._engine.counters
        lines = {
            "prefix_cache_queries_total": counters.prompt_tokens,
            "prefix_cache_hits_total": counters.reused_tokens,
            'request_success_total{finished_reason="length"}': counters.finished,
            'request_success_total{finished_reason="abort"}': counters.aborted,
            "num_requests_running": self._engine.running,
            "num_requests_waiting": self._engine.waiting,
        }
        settings = self._settings
        config = f'block_size="{settings.block_size}",num_gpu_blocks="{settings.blocks}"'
        lines |= {f"cache_config_info{{{config}}}": 1}
        return _text("".join(f"vllm:{name} {value}\n" for name, value in lines.items()))


def _text(content: str, status: int = 200) -> Reply:
    return Reply(content.encode(), status, "text/plain")
