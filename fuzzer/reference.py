"""The reference: each request answered by a computation that reused nothing, under its whole environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from fuzzer.errors import ServerFailure
from fuzzer.execution import Asked
from fuzzer.servers.protocol import Request, RequestRefused, Server
from oracles.judgement import near_tie
from oracles.noise import Noise
from oracles.observations import Done, Failure, Observation, Position, Step, Trace
from scenarios.entitlement import World
from scenarios.environment import AdapterScale, Environment
from scenarios.operations import Sampling


class ReferenceMode(StrEnum):
    """Where the reference's answers come from."""

    LAUNCHED = "launched"
    """A second server of ours with every cache off."""
    URL = "url"
    """A second server of the user's, each request told to skip the cache where it can be."""
    BYPASS = "bypass"
    """The target itself, each request told to skip the cache; asked after the plan's own steps."""


class Reference:
    """Answers plans request by request; used by one thread at a time.

    ``revive`` gives another life of the server after it was lost; None where it is not ours to restart.
    ``with_weights`` gives the server for another version of the model's weights; None where no plan loads one.
    """

    def __init__(
        self,
        server: Server,
        mode: ReferenceMode,
        revive: Callable[[], Server] | None = None,
        with_weights: Callable[[int], Server] | None = None,
    ) -> None:
        self.server = server
        self.mode = mode
        self.requests = 0
        self._reusing = 0
        self._revive = revive
        self._with_weights = with_weights
        self._weighted: dict[int, Server] = {}

    def close(self) -> None:
        """Close the connections to the servers."""
        for server in (self.server, *self._weighted.values()):
            server.close()

    @property
    def doubt(self) -> str | None:
        """Why its answers prove nothing, where they do not: it has a cache too, which may be as wrong."""
        if not self._reusing:
            return None
        return (
            f"the reference reused tokens in {self._reusing} of {self.requests} answers, so that it may be wrong where "
            "the target is: it needs every cache off, also those on disk or on other servers"
        )

    def run(self, asked: Sequence[Asked | None]) -> Trace:
        """What each request must give; equal requests of a plan are asked once, what is not judged not at all."""
        known: dict[Asked, Observation | Failure] = {}
        return Trace([self._step(one, known) for one in asked])

    def answer(self, request: Request, weights: int = 0) -> Observation | Failure:
        """The answer of a computation that reuses nothing; raises ServerFailure where none can be had."""
        if weights:
            return self._ask(request, self._server_with(weights))
        try:
            return self._ask(request)
        except ServerFailure:
            if self._revive is None:
                raise
            self.server.close()
            self.server = self._revive()
        try:
            return self._ask(request)
        except ServerFailure as failure:
            raise ServerFailure(f"the reference was started again and lost at the same request: {failure}") from None

    def _server_with(self, weights: int) -> Server:
        if weights not in self._weighted:
            if self._with_weights is None:
                raise ServerFailure("the reference has one version of the model's weights only")
            self._weighted[weights] = self._with_weights(weights)
        return self._weighted[weights]

    def _ask(self, request: Request, server: Server | None = None) -> Observation | Failure:
        self.requests += 1
        try:
            answer = (server or self.server).complete(request)
        except RequestRefused as refusal:
            return Failure(refusal.reason, refusal.status)
        self._reusing += bool(answer.reused)
        return answer

    def along(self, ours: Trace, theirs: Trace, noise: Noise) -> Trace:
        """``theirs`` with every near-tie taken the way the target took it, so that answers compare to their end."""
        steps = list(theirs.steps)
        for at, (mine, other) in enumerate(zip(ours.steps, theirs.steps, strict=False)):
            if isinstance(mine.outcome, Observation) and isinstance(other.outcome, Observation):
                outcome = self._follow(ours, at, mine.outcome, other.outcome, noise)
                steps[at] = msgspec.structs.replace(other, outcome=outcome)
        return Trace(steps)

    def _step(self, asked: Asked | None, known: dict[Asked, Observation | Failure]) -> Step:
        if asked is None or asked.environment is None:
            return Step(outcome=Done())
        if asked not in known:
            request = self._request(asked.prompt, asked.tokens, asked.environment, asked.sampling)
            known[asked] = self.answer(request, asked.environment.weights)
        return Step(outcome=known[asked], prompt=asked.prompt, environment=asked.environment, asked=asked.tokens)

    def _follow(self, trace: Trace, at: int, ours: Observation, theirs: Observation, noise: Noise) -> Observation:
        while (tie := near_tie(trace, at, theirs, noise)) is not None:
            forced = ours.tokens[: tie.position + 1]
            rest = self._continued(trace.steps[at], forced)
            if rest is None:
                break
            chosen = Position(forced[-1], theirs.positions[tie.position].top)
            positions = [*theirs.positions[: tie.position], chosen, *rest]
            theirs = msgspec.structs.replace(theirs, positions=positions)
        return theirs

    def _continued(self, step: Step, forced: tuple[int, ...]) -> list[Position] | None:
        if len(forced) == step.asked:
            return []
        if step.environment is None or step.sampling != Sampling.PLAIN:
            return None
        if self.mode is ReferenceMode.BYPASS and not World().has(step.environment):
            # By now the target has its first versions again.
            return None
        request = self._request(step.prompt + forced, step.asked - len(forced), step.environment, step.sampling)
        answer = self.answer(request, step.environment.weights)
        return answer.positions if isinstance(answer, Observation) else None

    def _request(self, prompt: tuple[int, ...], tokens: int, environment: Environment, sampling: str) -> Request:
        # Every adapter is named: what a request leaves out may be filled in from state that the server keeps.
        on = {scale.adapter: scale for scale in environment.scales}
        scales = tuple(
            on.get(adapter, AdapterScale(adapter, 0.0)) for adapter in range(self.server.capabilities.adapters)
        )
        return Request(prompt, tokens, scales, reuse=False, sampling=Sampling(sampling))
