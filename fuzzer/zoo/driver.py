"""Keeps the engine stepping while it has work, one step a turn of the event loop, and wakes who waits for tokens."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from fuzzer.zoo.engine import Engine, Run
from fuzzer.zoo.requests import Generated, Request


class EngineCrashError(Exception):
    """A step failed; every request in it is lost."""


@dataclass(slots=True, eq=False)
class Ticket:
    """A client's hold on its run."""

    run: Run
    progressed: asyncio.Event = field(default_factory=asyncio.Event)
    crashed: bool = False

    async def tokens(self) -> AsyncIterator[list[Generated]]:
        """The answer in the portions in which it becomes ready."""
        sent = 0
        while not self.run.finished:
            await self.progressed.wait()
            self.progressed.clear()
            if self.crashed:
                raise EngineCrashError
            if len(self.run.answer) > sent:
                portion = self.run.answer[sent:]
                sent += len(portion)
                yield portion

    async def answer(self) -> list[Generated]:
        async for _ in self.tokens():
            pass
        return self.run.answer


class Driver:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._tickets: dict[Run, Ticket] = {}
        self._stepping: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self, request: Request) -> AsyncIterator[Ticket]:
        """Submit the request; leaving early, as when the client disconnects, aborts it."""
        run = self.engine.submit(request)
        ticket = self._tickets[run] = Ticket(run)
        if self._stepping is None or self._stepping.done():
            self._stepping = asyncio.create_task(self._step_until_idle())
        try:
            yield ticket
        finally:
            del self._tickets[run]
            self.engine.abort(run)

    async def _step_until_idle(self) -> None:
        while not self.engine.idle:
            try:
                progressed = self.engine.step()
            except Exception:  # a planted bug may break anything; the server must answer on
                traceback.print_exc()
                self._crash()
                return
            for run in progressed:
                if run in self._tickets:
                    self._tickets[run].progressed.set()
            await asyncio.sleep(0)

    def _crash(self) -> None:
        for ticket in self._tickets.values():
            self.engine.abort(ticket.run)
            ticket.crashed = True
            ticket.progressed.set()
