"""What the servers with OpenAI-style completion routes have in common; what is theirs alone stands in their modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuzzer.servers import sse
from fuzzer.servers.actions import carry_out
from fuzzer.servers.http import Connection, decode
from fuzzer.servers.openai_wire import Completion, Usage, observation_of, positions_of
from fuzzer.servers.protocol import NO_VARIABLES, Action, Request, RequestRefused, Use, Watcher
from fuzzer.servers.texts import NO_TEXTS, Texts
from oracles.observations import Observation, Position
from scenarios.capabilities import Capabilities
from scenarios.operations import Operation, Sampling

_DONE = b"[DONE]"


class OpenAIServer:
    """Asks, streams and decodes; subclasses say in ``body`` how a request is spelled and in ``action`` what else is."""

    engine = ""
    path = "/v1/completions"
    capabilities: Capabilities
    version = "unknown"
    texts: Texts = NO_TEXTS
    variables: Mapping[str, str] = NO_VARIABLES

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._connection = Connection(url)
        self._connection.reach()

    def complete(self, request: Request) -> Observation:
        """Send one request and wait for the whole answer."""
        answer = self._decoded(self._connection.post(self.path, self.body(request)))
        if answer.error is not None or not answer.choices:
            raise RequestRefused(f"no answer: {answer.error}"[:300])
        return self._observation(self._positions(answer, request), answer.usage)

    def stream(self, request: Request, watcher: Watcher) -> Observation:
        """Send one request on a connection of its own and tell ``watcher`` each token as it comes."""
        positions: list[Position] = []
        usage: Usage | None = None
        for content in sse.events(self.url, self.path, self.streamed(request), watcher):
            if content == _DONE:
                return self._observation(positions, usage)
            chunk = self._decoded(content)
            if chunk.error is not None:
                raise RequestRefused(f"error in the stream: {chunk.error}"[:300])
            usage = chunk.usage or usage
            for position in self._positions(chunk, request):
                positions.append(position)
                watcher.arrived(position)
        raise RequestRefused("the stream ended without its last event")

    def perform(self, operation: Operation) -> int | None:
        """Do an operation that is no request."""
        action = self.action(operation)
        if not action:
            raise RequestRefused(f"{self.engine} cannot do {operation}")
        carry_out(self._connection, action)
        return None

    def action(self, operation: Operation) -> Action:
        """What an operation that is no request is on the wire; empty for one that this server cannot do."""
        return ()

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as."""
        raise NotImplementedError

    def streamed(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as where its answer is to come token by token."""
        return self.body(request) | {"stream": True, "stream_options": {"include_usage": True}}

    def text_of(self, token: int) -> str | None:
        """The text of one token; None where it is not known."""
        try:
            return self.texts.text(token)
        except RequestRefused:
            return None

    @property
    def use(self) -> Use:
        """Nothing, unless a subclass knows more."""
        return Use()

    def close(self) -> None:
        """Close the kept connection."""
        self._connection.close()

    def _decoded(self, content: bytes) -> Completion:
        return decode(content, Completion)

    def _observation(self, positions: list[Position], usage: Usage | None) -> Observation:
        return observation_of(positions, usage, tells=self.capabilities.cached_counts)

    def _positions(self, answer: Completion, request: Request) -> list[Position]:
        greedy = request.sampling is not Sampling.SEEDED
        most = self.capabilities.top_logprobs
        return [
            position
            for choice in answer.choices[:1]
            for position in positions_of(choice, self.texts, greedy=greedy, most=most)
        ]


def adapter_named(request: Request) -> tuple[int, int] | None:
    """Number and version of the one adapter that is on; raises RequestRefused where that cannot be said by a name."""
    on = [scale for scale in request.scales or () if scale.scale]
    if not on:
        return None
    if len(on) > 1 or on[0].scale != 1:
        raise RequestRefused("a request to this server names one adapter, which is then fully on")
    return on[0].adapter, on[0].version
