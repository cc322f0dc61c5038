"""A small ASGI application: routes, JSON, event streams, and a handler that ends when its client has gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from fuzzer.zoo.driver import EngineCrashError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HttpRequest:
    path: str
    query: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    body: bytes
    status: int = 200
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class EventStream:
    """Server-sent events; the status line goes out before the first of them is ready."""

    events: AsyncIterator[bytes]


Handler = Callable[[HttpRequest], Awaitable[Reply | EventStream]]
Routes = Mapping[tuple[str, str], Handler]


class Refused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """The request cannot be served; the server's own error body says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def json_reply(content: object, status: int = 200) -> Reply:
    return Reply(msgspec.json.encode(content), status)


def event(content: object) -> bytes:
    return b"data: " + msgspec.json.encode(content) + b"\n\n"


class App:
    """``routes`` by method and path; a route that ends in ``/`` serves every path below it."""

    def __init__(self, routes: Routes, render_error: Callable[[int, str], object]) -> None:
        self._routes = routes
        self._render_error = render_error

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = HttpRequest(scope["path"], dict(parse_qsl(scope["query_string"].decode())), await _body(receive))
        answering = asyncio.ensure_future(self._answer(scope["method"], request, send))
        leaving = asyncio.ensure_future(_gone(receive))
        done, pending = await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        if answering in done:
            answering.result()

    async def _answer(self, method: str, request: HttpRequest, send: Send) -> None:
        reply = await self._handle(method, request)
        if isinstance(reply, Reply):
            await _send_head(send, reply.status, reply.content_type, len(reply.body))
            await send({"type": "http.response.body", "body": reply.body})
            return
        await _send_head(send, 200, "text/event-stream", None)
        async with aclosing(reply.events) as events:  # type: ignore[type-var]
            async for part in events:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _handle(self, method: str, request: HttpRequest) -> Reply | EventStream:
        handler = self._routes.get((method, request.path))
        handler = handler or self._routes.get((method, request.path.rpartition("/")[0] + "/"))
        try:
            if handler is None:
                raise Refused(404, "File Not Found")
            return await handler(request)
        except Refused as error:
            return self._error(error.status, str(error))
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            return self._error(400, str(error))
        except EngineCrashError:
            return self._error(500, "the engine's step failed")

    def _error(self, status: int, message: str) -> Reply:
        return json_reply(self._render_error(status, message), status)


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_head(send: Send, status: int, content_type: str, length: int | None) -> None:
    headers = [(b"content-type", content_type.encode())]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
