"""The target's life: started or attached to, restarted when it died or its roots ran out, started afresh for triage."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from fuzzer.company import Company
from fuzzer.errors import CannotJudge, ServerFailure
from fuzzer.roots import RootPool, elsewhere
from fuzzer.servers.protocol import Server
from oracles.observations import Failure

_LAST_LINES = 8


class Process(Protocol):
    """A server process that we started."""

    url: str

    def restart(self) -> None:
        """End it and start it again, perhaps on another port."""
        ...

    def stop(self) -> None:
        """End it for certain."""
        ...

    def alive(self) -> bool:
        """Whether the process runs."""
        ...

    def ending(self) -> str:
        """How the process ended, in words."""
        ...

    def log_tail(self, lines: int = 20) -> str:
        """The last lines that it logged."""
        ...


class Mishap(msgspec.Struct, frozen=True):
    """Something that befell a server of ours: one sentence."""

    why: str
    explained: bool = True
    """False: no step of any plan shows it, so that the run has to own up to it."""


Notice = Callable[[Mishap], None]
"""Told each mishap by whichever thread saw it."""


def ignore(mishap: Mishap) -> None:
    """The notice of servers whose fate nobody asks for."""


class Target:
    """A live server with the root tokens it has not seen. ``process`` is None for a server that is not ours."""

    def __init__(
        self,
        connect: Callable[[str], Server],
        *,
        process: Process | None = None,
        url: str = "",
        notice: Notice = ignore,
        company: Company | None = None,
    ) -> None:
        self._connect = connect
        self._process = process
        self._notice = notice
        self.company = company or Company()
        self._lost = False
        self._unrestored: str | None = None
        self.url = url
        self.lives = 1
        self.server = connect(process.url if process is not None else url)
        self.roots = self._fresh_roots()

    @property
    def ours(self) -> bool:
        """Whether we started it, and so may restart it."""
        return self._process is not None

    @property
    def dead(self) -> bool:
        """Whether our process has ended."""
        return self._process is not None and not self._process.alive()

    def lost(self, failure: Failure) -> Failure:
        """Note that nothing answers any more; ``failure`` comes back with what became of the server."""
        self._lost = True
        if self._process is None:
            return failure
        return Failure(f"no answer: {self._process.ending()}", dead=True, log=self._process.log_tail(_LAST_LINES))

    def unrestored(self, why: str) -> None:
        """Note that a plan left other versions than it met: no later plan may run on them."""
        self._unrestored = why

    def prepare(self, roots: int) -> None:
        """Restart a server of ours that has died or hung, or that has fewer unused root tokens than ``roots``.

        Raises CannotJudge where a server that is not ours has gone, or was left with other versions.
        """
        if self._lost or self.dead:
            self._recover()
        elif self._unrestored is not None:
            self._start_over(self._unrestored)
        elif self.ours and self.roots.left < roots:
            self.restart()

    def _recover(self) -> None:
        in_a_plan, self._lost = self._lost, False
        if self._process is None:
            # Asked anew, a server that has come back by itself goes on, and one that has not says so.
            self.server.close()
            self.server = self._connect(self.url)
            return
        when = "stopped answering" if in_a_plan else "died between two plans"
        self._notice(Mishap(f"the target {when} ({self._process.ending()}) and is started again", in_a_plan))
        self.restart()

    def _start_over(self, why: str) -> None:
        said = f"the target could not be given back its first adapters or weights ({why})"
        if self._process is None:
            raise CannotJudge(said)
        self._notice(Mishap(f"{said} and is started again"))
        self.restart()

    def restart(self) -> None:
        """A new life: nothing cached, every root token unused. Does nothing to a server that is not ours."""
        if self._process is None:
            return
        self.lives += 1
        self._unrestored = None
        self.server.close()
        self._process.restart()
        self.server = self._connect(self._process.url)
        self.roots = self._fresh_roots()

    def restarted_in_place(self) -> Server:
        """The server of ours ended and started again in mid-plan: what it has on disk it may know roots from.

        Raises ServerFailure where it does not come up again, or is not ours.
        """
        if self._process is None:
            raise ServerFailure("a server that is not ours is not restarted")
        self.server.close()
        self._process.restart()
        self.server = self._connect(self._process.url)
        return self.server

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of the server's log; empty for a server that is not ours."""
        return self._process.log_tail(lines) if self._process is not None else ""

    def close(self) -> None:
        """Leave the server; end it where it is ours."""
        self.server.close()
        if self._process is not None:
            self._process.stop()

    def _fresh_roots(self) -> RootPool:
        space = self.server.capabilities.space
        return RootPool(space) if self.ours else elsewhere(space, time.time_ns())
