"""Where triage runs plans: on the live target, which is quick, and on freshly started ones, which prove."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress

from fuzzer.differential import Differential
from fuzzer.errors import CannotJudge
from fuzzer.target import Target
from oracles.arms import alone
from oracles.evidence import Arm
from scenarios.plans import Plan

StartTarget = Callable[[tuple[str, ...]], Target]
"""Starts a target of ours with further flags."""


class Lab:
    """The live comparison and a supply of fresh targets. Without ``start``, fresh means fresh roots on the live one."""

    def __init__(self, live: Differential, start: StartTarget | None, pool: ThreadPoolExecutor) -> None:
        self.live = live
        self._start = start
        self._pool = pool
        self._spares: deque[Future[Target]] = deque()

    @property
    def has_fresh(self) -> bool:
        """Whether a fresh target is a process of its own."""
        return self._start is not None

    def expect(self, count: int) -> None:
        """Begin to start targets that will be asked for soon; a start costs more than a plan."""
        if self._start is not None:
            while len(self._spares) < count:
                self._spares.append(self._pool.submit(self._start, ()))

    @contextmanager
    def fresh(self, *flags: str) -> Iterator[Differential]:
        """A comparison against a target that nothing was asked of yet, started with further flags."""
        if self._start is None:
            yield self.live
            return
        target = self._take(flags)
        differential = self.live.on(target)
        try:
            yield differential
        finally:
            self._pool.submit(target.close)

    def arm(self, plan: Plan, step: int) -> Arm:
        """How a step fares where nothing went before its plan, not even our own measuring."""
        with self.fresh() as fresh:
            return fresh.run(plan).arm(step)

    def alone(self, plan: Plan, wrong: int) -> Arm:
        """The request without its history; one that goes on after an answer is asked anew with the cache bypassed."""
        lone = alone(plan, wrong)
        if lone is not None:
            return self.arm(*lone)
        with self.fresh() as fresh:
            return fresh.run(plan, reuse=False).arm(wrong)

    def close(self) -> None:
        """End the targets that were started and never used."""
        while self._spares:
            with suppress(CannotJudge):
                self._spares.popleft().result().close()

    def _take(self, flags: tuple[str, ...]) -> Target:
        assert self._start is not None
        if not self._spares or flags:
            return self._start(flags)
        # Taken off only once it is there, so that an interrupted wait leaves it to close().
        target = self._spares[0].result()
        self._spares.popleft()
        return target
