"""The llama flavour's routes, as llama-server has them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from fuzzer.zoo.adapters import ScaledAdapters
from fuzzer.zoo.app import App, EventStream, HttpRequest, Refused, Reply, Routes, event, json_reply
from fuzzer.zoo.driver import Driver
from fuzzer.zoo.engine import Engine
from fuzzer.zoo.llama_format import AdapterScale, CompletionBody, error, final, part
from fuzzer.zoo.model import Network
from fuzzer.zoo.requests import Request
from fuzzer.zoo.settings import Settings
from fuzzer.zoo.slots import SlotCache
from fuzzer.zoo.text import detokenise, outside, tokenise

ADAPTERS = ("zoo-adapter-0", "zoo-adapter-1")


class SlotFile(msgspec.Struct):
    filename: str


class LlamaServer:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._cache = SlotCache(settings)
        self._engine = Engine(settings, Network(settings.shape), self._cache)
        self._driver = Driver(self._engine)
        self._adapters = ScaledAdapters(ADAPTERS)

    def app(self) -> App:
        routes: Routes = {
            ("POST", "/completion"): self._completion,
            ("POST", "/completions"): self._completion,
            ("POST", "/tokenize"): self._tokenise,
            ("POST", "/detokenize"): self._detokenise,
            ("GET", "/lora-adapters"): self._list_adapters,
            ("POST", "/lora-adapters"): self._scale_adapters,
            ("GET", "/slots"): self._list_slots,
            ("POST", "/slots/"): self._slot_action,
            ("GET", "/props"): self._props,
            ("GET", "/v1/models"): self._models,
            ("GET", "/health"): self._health,
            ("GET", "/metrics"): self._metrics,
        }
        return App(routes, error)

    async def _completion(self, request: HttpRequest) -> Reply | EventStream:
        body = msgspec.json.decode(request.body, type=CompletionBody)
        asked = self._request(body)
        if body.stream:
            return EventStream(self._stream(asked, body))
        async with self._driver.running(asked) as ticket:
            answer = await ticket.answer()
        return json_reply(final(ticket.run, answer, body))

    async def _stream(self, asked: Request, body: CompletionBody) -> AsyncIterator[bytes]:
        async with self._driver.running(asked) as ticket:
            async for portion in ticket.tokens():
                yield event(part(ticket.run, portion, body))
        yield event(final(ticket.run, [], body))

    def _request(self, body: CompletionBody) -> Request:
        shape = self._settings.shape
        tokens = tokenise(body.prompt, shape.vocabulary) if isinstance(body.prompt, str) else body.prompt
        if not tokens or outside((*tokens, *body.sampling().named_tokens), shape.vocabulary):
            raise Refused(400, "the prompt is empty, or a token id lies outside the vocabulary")
        room = shape.context - len(tokens)
        if room <= 0:
            raise Refused(400, f"the request exceeds the available context size ({shape.context} tokens)")
        if body.id_slot >= self._settings.rows:
            raise Refused(400, f"there is no slot {body.id_slot}")
        return Request(
            tokens=tuple(tokens),
            max_tokens=room if body.n_predict < 0 else min(room, body.n_predict),
            environment=self._adapters.environment(self._scales(body.lora)),
            sampling=body.sampling(),
            reads_cache=body.cache_prompt,
            names_adapters=body.lora is not None,
            slot=body.id_slot if body.id_slot >= 0 else None,
        )

    def _scales(self, scales: list[AdapterScale] | None) -> dict[int, float] | None:
        if scales is None:
            return None
        if not all(0 <= adapter.id < len(ADAPTERS) for adapter in scales):
            raise Refused(400, "there is no adapter with that id")
        return {adapter.id: adapter.scale for adapter in scales}

    async def _tokenise(self, request: HttpRequest) -> Reply:
        content = msgspec.json.decode(request.body, type=dict[str, object]).get("content", "")
        return json_reply({"tokens": tokenise(str(content), self._settings.shape.vocabulary)})

    async def _detokenise(self, request: HttpRequest) -> Reply:
        return json_reply(
            {"content": detokenise(msgspec.json.decode(request.body, type=dict[str, list[int]])["tokens"])}
        )

    async def _list_adapters(self, _: HttpRequest) -> Reply:
        pairs = zip(self._adapters.paths, self._adapters.scales, strict=True)
        return json_reply([{"id": number, "path": path, "scale": scale} for number, (path, scale) in enumerate(pairs)])

    async def _scale_adapters(self, request: HttpRequest) -> Reply:
        self._adapters.set_scales(self._scales(msgspec.json.decode(request.body, type=list[AdapterScale])) or {})
        return json_reply({"success": True})

    async def _list_slots(self, _: HttpRequest) -> Reply:
        context = self._settings.shape.context
        slots = self._cache.slots
        return json_reply(
            [{"id": slot.number, "n_ctx": context, "is_processing": slot.lease is not None} for slot in slots]
        )

    async def _slot_action(self, request: HttpRequest) -> Reply:
        number = request.path.rpartition("/")[2]
        if not number.isdecimal() or int(number) >= len(self._cache.slots):
            raise Refused(400, "there is no such slot")
        if self._cache.slots[int(number)].lease is not None:
            raise Refused(503, "the slot is busy")
        return self._apply(int(number), request.query.get("action"), request.body)

    def _apply(self, slot: int, action: str | None, body: bytes) -> Reply:
        if action == "erase":
            return json_reply({"id_slot": slot, "n_erased": self._cache.erase(slot)})
        if action not in ("save", "restore"):
            raise Refused(400, "the action is none of save, restore, erase")
        name = msgspec.json.decode(body, type=SlotFile).filename
        if action == "save":
            return json_reply({"id_slot": slot, "filename": name, "n_saved": self._cache.save(slot, name)})
        restored = self._cache.restore(slot, name)
        if restored is None:
            raise Refused(400, "Unable to restore slot, no such file")
        return json_reply({"id_slot": slot, "filename": name, "n_restored": restored})

    async def _props(self, _: HttpRequest) -> Reply:
        return json_reply(
            {
                "default_generation_settings": {"n_ctx": self._settings.shape.context},
                "total_slots": self._settings.rows,
                "model_path": f"zoo-{self._settings.shape.family}",
                "build_info": "zoo",
                "is_sleeping": False,
            }
        )

    async def _models(self, _: HttpRequest) -> Reply:
        shape = self._settings.shape
        meta = {"n_vocab": shape.vocabulary, "n_ctx_train": shape.context, "n_embd": shape.width}
        return json_reply({"object": "list", "data": [{"id": "zoo", "object": "model", "meta": meta}]})

    async def _health(self, _: HttpRequest) -> Reply:
        return json_reply({"status": "ok"})

    async def _metrics(self, _: HttpRequest) -> Reply:
        counters = self._engine.counters
        lines = {
            "prompt_tokens_total": counters.prompt_tokens - counters.reused_tokens,
            "tokens_predicted_total": counters.answer_tokens,
            "n_decode_total": counters.steps,
            "requests_processing": self._engine.running,
            "requests_deferred": self._engine.waiting,
        }
        return Reply(
            "".join(f"llamacpp:{name} {value}\n" for name, value in lines.items()).encode(), content_type="text/plain"
        )
