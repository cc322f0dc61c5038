"""Execution of a plan on one server: operations in order, one step each, requests that were started beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from fuzzer.errors import ServerFailure
from fuzzer.flight import Flight, counter
from fuzzer.servers.protocol import Request, RequestRefused, Server
from oracles.observations import Done, Failure, Observation, Span, Step, Trace
from scenarios.entitlement import TELLING, changed_versions, entitlements, overwritten
from scenarios.environment import Environment
from scenarios.operations import Abort, Await, Complete, Evict, Join, Operation, Restart, Restore, Save, Start
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment, prompt_tokens


class Roots(msgspec.Struct, frozen=True):
    """The tokens that a plan's roots and its filler prompts begin with."""

    prompts: tuple[int, ...]
    fillers: tuple[int, ...] = ()


class Asked(msgspec.Struct, frozen=True):
    """What a request asks and is entitled to; all that a reference has to know of it."""

    prompt: tuple[int, ...]
    environment: Environment | None
    tokens: int
    sampling: str


def run_plan(
    server: Server,
    plan: Plan,
    roots: Roots,
    *,
    reuse: bool = True,
    restart: Callable[[], Server] | None = None,
    ended: Callable[[Trace], None] = lambda trace: None,
) -> Trace:
    """Run ``plan``; without ``reuse``, every request is told to bypass the cache.

    ``restart`` gives the server's next life, for plans that ask for one. A server that stops answering ends the trace
    with the failure of the step that it died in. ``ended`` is called while the server still has the versions of
    adapters and weights that the plan loaded last.
    """
    return _Execution(server, plan, roots, reuse=reuse, restart=restart).run(ended)


def asked_by(plan: Plan, roots: Roots, server: Server) -> list[Asked | None] | None:
    """What each operation asks, where that is known before the plan runs: no prompt goes on after an answer."""
    requests = [op for op in plan.operations if isinstance(op, (Complete, Start))]
    if any(request.prompt.after is not None for request in requests):
        return None
    space = server.capabilities.space
    return [
        Asked(prompt_tokens(op.prompt, roots.prompts, space), environment, op.tokens, op.sampling)
        if isinstance(op, (Complete, Start))
        else None
        for op, environment in zip(plan.operations, entitlements(plan), strict=True)
    ]


def asked_in(trace: Trace) -> list[Asked | None]:
    """What each operation asked, from the trace of its run."""
    return [
        Asked(step.prompt, step.environment, step.asked, step.sampling) if step.prompt else None for step in trace.steps
    ]


def asked_still(plan: Plan, trace: Trace) -> list[Asked | None]:
    """The same, as far as it can be asked of the server that ran ``plan``: not under versions that it has no more."""
    return [None if gone else asked for gone, asked in zip(overwritten(plan), asked_in(trace), strict=False)]


def request_of(operation: Complete | Start, prompt: tuple[int, ...], *, reuse: bool = True) -> Request:
    """How ``operation`` is asked of a server."""
    return Request(
        prompt, operation.tokens, operation.scales, reuse, operation.slot, operation.sampling, operation.salt
    )


class _Execution:
    def __init__(
        self, server: Server, plan: Plan, roots: Roots, *, reuse: bool, restart: Callable[[], Server] | None
    ) -> None:
        self._server = server
        self._plan = plan
        self._roots = roots
        self._fillers = iter(roots.fillers)
        self._reuse = reuse
        self._restarted = restart
        self._saved: set[int] = set()
        self._environments = entitlements(plan)
        self._steps: list[Step] = []
        self._flights: dict[int, Flight] = {}
        self._tick = counter()

    def run(self, ended: Callable[[Trace], None]) -> Trace:
        try:
            for operation in self._plan.prologue:
                self._server.perform(operation)
            for at, operation in enumerate(self._plan.operations):
                self._steps.append(self._step(at, operation))
        except RequestRefused as refusal:
            self._steps.append(Step(outcome=Failure(refusal.reason, refusal.status)))
        except ServerFailure as failure:
            self._steps.append(Step(outcome=Failure(str(failure), dead=True)))
        trace = Trace(self._landed())
        if trace.lost is not None:
            return trace
        try:
            ended(trace)
        finally:
            unrestored = self._restore()
        return msgspec.structs.replace(trace, unrestored=unrestored)

    def _restore(self) -> str | None:
        """Bring back the first versions of adapters and weights, which later plans rely on; gives why not, if so."""
        try:
            for operation in changed_versions(self._plan):
                self._server.perform(operation)
        except RequestRefused as refusal:
            return refusal.reason
        except ServerFailure as failure:
            return str(failure)
        return None

    def _step(self, at: int, operation: Operation) -> Step:
        match operation:
            case Complete():
                return self._complete(at, operation)
            case Start():
                return self._start(at, operation)
            case Await(of=of, tokens=tokens):
                self._flights[of].await_tokens(tokens)
            case Join(of=of):
                self._flights[of].join()
            case Abort(of=of):
                self._flights[of].abort()
            case Evict():
                return Step(outcome=Done(self._evict(operation)))
            case Restart():
                self._restart()
            case Restore(file=file) if file not in self._saved:
                # What an earlier plan saved under that name is none of this one's history.
                pass
            case _:
                done = self._perform(operation)
                if isinstance(done, Failure) and isinstance(operation, TELLING):
                    # What holds now only the server knows: what is asked from here on is not judged.
                    self._environments[at:] = [None] * len(self._environments[at:])
                return Step(outcome=done)
        return Step(outcome=Done())

    def _complete(self, at: int, operation: Complete) -> Step:
        prompt = self._prompt(operation.prompt)
        sent = self._tick()
        try:
            outcome: Observation | Failure = self._server.complete(request_of(operation, prompt, reuse=self._reuse))
        except RequestRefused as refusal:
            outcome = Failure(refusal.reason, refusal.status)
        ended = self._tick()
        return self._asked(at, operation, prompt, outcome, Span(sent, sent, ended))

    def _start(self, at: int, operation: Start) -> Step:
        prompt = self._prompt(operation.prompt)
        flight = Flight(self._server, request_of(operation, prompt, reuse=self._reuse), self._tick)
        self._flights[at] = flight
        flight.await_sent()
        return self._asked(at, operation, prompt, Observation([]), None)

    def _asked(
        self,
        at: int,
        operation: Complete | Start,
        prompt: tuple[int, ...],
        outcome: Observation | Failure,
        span: Span | None,
    ) -> Step:
        return Step(
            outcome=outcome,
            prompt=prompt,
            environment=self._environments[at],
            asked=operation.tokens,
            sampling=operation.sampling,
            span=span,
        )

    def _prompt(self, prompt: Prompt) -> tuple[int, ...]:
        return prompt_tokens(prompt, self._roots.prompts, self._server.capabilities.space, self._grown(prompt))

    def _grown(self, prompt: Prompt) -> tuple[int, ...]:
        """The conversation that a prompt goes on after: what was asked there and the first tokens of the answer."""
        if prompt.after is None:
            return ()
        if prompt.after in self._flights:
            self._flights[prompt.after].join()
            self._steps[prompt.after] = self._landed_step(prompt.after)
        step = self._steps[prompt.after]
        answer = step.outcome.tokens if isinstance(step.outcome, Observation) else ()
        return step.prompt + answer[: prompt.answer]

    def _evict(self, operation: Evict) -> int:
        filler = Prompt(0, (Segment("z", operation.length - 1),))
        for root in self._taken(operation.requests):
            prompt = prompt_tokens(filler, (root,), self._server.capabilities.space)
            self._server.complete(Request(prompt, 1, operation.scales, self._reuse))
        return operation.requests

    def _taken(self, count: int) -> Iterator[int]:
        return (next(self._fillers) for _ in range(count))

    def _restart(self) -> None:
        for flight in self._flights.values():
            flight.join()
        if self._restarted is None:
            raise ServerFailure("the server is not ours to restart")
        self._server = self._restarted()

    def _perform(self, operation: Operation) -> Done | Failure:
        try:
            done = Done(self._server.perform(operation))
            self._saved |= {operation.file} if isinstance(operation, Save) else set()
            return done
        except RequestRefused as refusal:
            return Failure(refusal.reason, refusal.status)

    def _landed(self) -> Sequence[Step]:
        """The steps with the answers of all flights, which are joined here if not before."""
        for at in self._flights:
            if at < len(self._steps):
                self._steps[at] = self._landed_step(at)
        return self._steps

    def _landed_step(self, at: int) -> Step:
        flight = self._flights[at]
        try:
            flight.join()
            outcome: Observation | Failure = flight.outcome
        except ServerFailure as failure:
            outcome = Failure(str(failure), dead=True)
        return msgspec.structs.replace(self._steps[at], outcome=outcome, span=flight.span, aborted=flight.aborted)
