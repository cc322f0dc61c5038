"""Company: whether somebody else uses a server of the user's while it is tested.

Requests of others show in the server's own counters, which may not grow by more than what we asked of it. Settings that
hold for everybody are read after each plan, and before we change them ourselves.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from fuzzer.errors import ServerFailure
from fuzzer.servers.protocol import Occupant, Request, RequestRefused, Use
from oracles.observations import Observation
from scenarios.operations import Flush, Operation, SetScales

_COUNT_EVERY_S = 2.0
_SETTLING_S = 0.02
_SETTLING_TRIES = 50


class Sighting(msgspec.Struct, frozen=True):
    """Something that somebody else did to the server: one sentence."""

    why: str


class Seen(msgspec.Struct, frozen=True):
    """What others were seen to do; ``work`` is at least how much of it they asked for, 0 where only that they did."""

    requests: int = 0
    """How often there were some since the look before."""
    work: int = 0
    changes: int = 0


@dataclass(slots=True)
class _Account:
    """What we asked of the server since it was last counted."""

    effort: int = 0
    sizes: dict[int, set[int]] = field(default_factory=dict)
    """Tokens that our requests may have left in each slot."""
    whole: bool = True
    """Whether there was nothing beside completions."""
    placed: bool = True
    """Whether the slot of every request is known."""


class Company:
    """Watches one server; ``told`` gets what is seen. Until ``meet``, there is nothing to watch.

    Plans are run by one thread, but their requests are sent by several.
    """

    def __init__(self, told: Callable[[Sighting], None] = lambda sighting: None) -> None:
        self._told = told
        self._lock = threading.Lock()
        self._looked = 0
        self.seen = Seen()
        self.changed: Counter[str] = Counter()
        """What others set to something else, and how often."""
        self.earlier = 0
        """Hits on prompts that this run had not asked."""
        self.meet(Use())

    def meet(self, use: Use) -> None:
        """Watch the server that tells its use here, from what it says now."""
        self.use = use
        self._expected = use.environment()
        self._start_count(use.work(), use.occupants())

    def asked(self, request: Request, answer: Observation | None) -> None:
        """A request of ours ended; ``answer`` is None where it was aborted or failed."""
        with self._lock:
            self._ours.effort += self.use.effort(request, answer)
            if answer is None or answer.slot is None:
                self._ours.placed = False
            else:
                prompt, whole = len(request.prompt), len(request.prompt) + len(answer.positions)
                self._ours.sizes.setdefault(answer.slot, set()).update((prompt, whole - 1, whole))

    def met_earlier(self) -> None:
        """A request hit what is none of ours: somebody else, or an earlier run, had asked that prompt."""
        if not self.earlier:
            self._told(Sighting("the target has prompts in its cache that this run did not ask"))
        self.earlier += 1

    def about_to(self, operation: Operation) -> None:
        """We are going to do ``operation``: what somebody else set would be gone afterwards."""
        if self.use.after(operation):
            self._compare_environment()

    def did(self, operation: Operation, *, done: bool = True) -> None:
        """We did ``operation``; most leave something in counters and slots. One not ``done`` may be done in part."""
        self._expected |= self.use.after(operation)
        if not done:
            with suppress(RequestRefused, ServerFailure):
                self._expected = self.use.environment()
        if not isinstance(operation, (SetScales, Flush)):
            with self._lock:
                self._ours.whole = self._ours.placed = False

    def look(self) -> bool:
        """Whether anybody changed what holds for all users since the last look; requests are counted now and then."""
        self._compare_environment()
        if time.monotonic() - self._counted > _COUNT_EVERY_S:
            self.count()
        before, self._looked = self._looked, self.seen.changes
        return self._looked > before

    def count(self) -> Seen:
        """Hold the server's counters against what we asked of it; none of our requests may be on its way."""
        with suppress(RequestRefused, ServerFailure):
            work, occupants = self._settled_work(), self.use.occupants()
            if work is not None and self._work is not None:
                excess = work - self._work - self._ours.effort
                if excess > 0 and self._ours.whole:
                    self._see_requests(excess)
            elif self._ours.placed and self._strange(occupants):
                self._see_requests(0)
            self._start_count(work, occupants)
        return self.seen

    def _settled_work(self) -> int | None:
        """The work done; where some of ours is missing, read again until it rests, since an abort takes a moment."""
        work = self.use.work()
        for _ in range(_SETTLING_TRIES):
            if work is None or self._work is None or work >= self._work + self._ours.effort:
                break
            time.sleep(_SETTLING_S)
            before, work = work, self.use.work()
            if work == before:
                break
        return work

    def _strange(self, occupants: tuple[Occupant, ...]) -> bool:
        """Whether a slot was last used by a task that is none of ours."""
        return any(
            now.task != before.task and not self._is_ours(slot, now)
            for slot, (before, now) in enumerate(zip(self._occupants, occupants, strict=False))
        )

    def _is_ours(self, slot: int, occupant: Occupant) -> bool:
        sizes = self._ours.sizes.get(slot, set())
        # A slot that was emptied since then tells no size.
        return bool(sizes) and (not occupant.tokens or occupant.tokens in sizes)

    def _start_count(self, work: int | None, occupants: tuple[Occupant, ...]) -> None:
        with self._lock:
            self._work, self._occupants = work, occupants
            self._ours = _Account()
        self._counted = time.monotonic()

    def _see_requests(self, work: int) -> None:
        if not self.seen.requests:
            self._told(Sighting("somebody else sends requests to the target too"))
        self.seen = Seen(self.seen.requests + 1, self.seen.work + work, self.seen.changes)

    def _compare_environment(self) -> None:
        with suppress(RequestRefused, ServerFailure):
            found = self.use.environment()
            for name in sorted({*found, *self._expected}):
                before, now = self._expected.get(name, "nothing"), found.get(name, "nothing")
                if before != now:
                    self._see_change(name, before, now)
            self._expected = found

    def _see_change(self, name: str, before: str, now: str) -> None:
        if not self.changed[name]:
            self._told(Sighting(f"somebody else changed {name} from {before} to {now}"))
        self.changed[name] += 1
        self.seen = Seen(self.seen.requests, self.seen.work, self.seen.changes + 1)
