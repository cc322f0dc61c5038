"""The scheduler: admits requests, feeds prompts in chunks beside running answers, samples what a step completed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from fuzzer.zoo.arithmetic import Arithmetic
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.forward import forward, logits
from fuzzer.zoo.leases import Cache, Lease
from fuzzer.zoo.model import Network, Weights
from fuzzer.zoo.requests import Generated, Request
from fuzzer.zoo.sampler import Sampler
from fuzzer.zoo.settings import Settings


@dataclass(slots=True, eq=False)
class Run:
    """One request on its way; ``computed`` of its ``tokens`` (prompt and answer) are in the cache."""

    request: Request
    weights: Weights
    tokens: list[int]
    answer: list[Generated] = field(default_factory=list)
    lease: Lease | None = None
    computed: int = 0
    finished: bool = False

    @property
    def reused(self) -> int:
        return self.lease.reused if self.lease else 0

    @property
    def row(self) -> int:
        return self.lease.row if self.lease else -1


@dataclass(slots=True)
class Counters:
    finished: int = 0
    aborted: int = 0
    steps: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    answer_tokens: int = 0


class Engine:
    def __init__(self, settings: Settings, network: Network, cache: Cache) -> None:
        self._settings = settings
        self._network = network
        self._cache = cache
        self._sampler = Sampler(settings.rows, settings.bug)
        self._waiting: deque[Run] = deque()
        self._running: list[Run] = []
        self._written_again: list[Run] = []
        self.counters = Counters()

    @property
    def idle(self) -> bool:
        return not self._waiting and not self._running

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def submit(self, request: Request) -> Run:
        run = Run(request, self._network.weights(request.environment), list(request.tokens))
        self._waiting.append(run)
        return run

    def abort(self, run: Run) -> None:
        """Drop a request whose client has gone; what was computed for it stays valid."""
        if run.finished:
            return
        self.counters.aborted += 1
        if run in self._waiting:
            self._waiting.remove(run)
        else:
            self._close(run, aborted=True)
            if self._settings.bug is Bug.ABORTED_ROW_WRITES_AGAIN:
                self._written_again.append(run)

    def step(self) -> list[Run]:
        """Compute once for every running request that fits; the runs that got further."""
        self._admit()
        self.counters.steps += 1
        plan = self._plan() + [(run, run.tokens[-1:]) for run in self._written_again]
        self._written_again.clear()
        arithmetic = Arithmetic(self._settings.numerics, sum(len(tokens) for _, tokens in plan))
        for run, tokens in plan:
            self._compute(run, tokens, arithmetic)
        live = [(run, tokens) for run, tokens in plan if not run.finished]
        self._commit(live)
        for run, _ in live:
            if run.computed == len(run.tokens):
                self._sample(run, arithmetic)
        return [run for run, _ in live]

    def _admit(self) -> None:
        for run in list(self._waiting):
            run.lease = self._cache.admit(run.request)
            if run.lease is None:
                continue
            self._waiting.remove(run)
            self._running.append(run)
            self._sampler.open_row(run.lease.row, run.request)
            run.computed = run.lease.reused
            self.counters.prompt_tokens += len(run.request.tokens)
            self.counters.reused_tokens += run.lease.reused

    def _plan(self) -> list[tuple[Run, list[int]]]:
        """Running answers first, one token each; prompts share what is left of the step."""
        budget = self._settings.step_tokens
        plan = []
        for run in sorted(self._running, key=lambda run: not run.answer):
            tokens = run.tokens[run.computed : self._chunk_end(run, budget)]
            budget -= len(tokens)
            if tokens or run.computed == len(run.tokens):
                plan.append((run, tokens))
        return plan

    def _chunk_end(self, run: Run, budget: int) -> int:
        end = min(run.computed + min(budget, self._settings.chunk), len(run.tokens))
        if run.answer or run.lease is None or end <= run.computed:
            return end
        return self._cache.chunk_end(run.lease, run.computed, end)

    def _compute(self, run: Run, tokens: list[int], arithmetic: Arithmetic) -> None:
        if run.lease is None or not tokens:
            return
        shape = self._settings.shape
        run.lease.hidden = forward(shape, run.weights, run.lease.memory, tokens, arithmetic)

    def _commit(self, plan: Iterable[tuple[Run, list[int]]]) -> None:
        for run, tokens in plan:
            if run.lease is not None and tokens:
                run.computed += len(tokens)
                self._cache.commit(run.lease, tokens)

    def _sample(self, run: Run, arithmetic: Arithmetic) -> None:
        if run.lease is None or run.lease.hidden is None:
            return
        if len(run.answer) < run.request.max_tokens:
            row = logits(run.weights, run.lease.hidden, arithmetic)
            generated = self._sampler.sample(run.lease.row, row, run.reused, len(run.answer))
            run.answer.append(generated)
            run.tokens.append(generated.token)
        if len(run.answer) >= run.request.max_tokens:
            self.counters.finished += 1
            self._close(run, aborted=False)

    def _close(self, run: Run, *, aborted: bool) -> None:
        run.finished = True
        self._running.remove(run)
        self.counters.answer_tokens += len(run.answer)
        if run.lease is None:
            return
        sampled = run.answer[-1].token if run.answer else None
        for moved, source in self._cache.release(run.lease, sampled, aborted=aborted):
            self._sampler.move_row(source, moved.row)
