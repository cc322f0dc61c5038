"""mlx_lm.server over /v1/completions: text prompts, top logprobs with ids, adapters as folders, cached-token counts.

Field names are mlx-lm's own, mlx_lm/server.py of 0.32.2.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzzer.errors import ServerFailure, UnreachableError
from fuzzer.servers.http import Connection, decode
from fuzzer.servers.openai_server import OpenAIServer, adapter_named
from fuzzer.servers.openai_wire import Completion
from fuzzer.servers.protocol import NO_VARIABLES, Request, RequestRefused, Watcher
from fuzzer.servers.texts import Texts
from oracles.observations import Observation
from scenarios.capabilities import LASTING_IN_PYTHON, Capabilities
from scenarios.operations import Sampling
from scenarios.prompts import TokenSpace

ENGINE = "mlx-lm"
_TOP_K = 10
"""The most that it gives."""
_PART = 6
"""Tokens that are asked, left, or gone on with, to see what is reused of them."""
_FINGERPRINT = re.compile(r"(\d+\.\d+[^-]*)-(\d+\.\d+[^-]*)-(Linux|macOS|Darwin|Windows)")
_DEAD = "generation thread died"
_SAMPLINGS: dict[Sampling, dict[str, Any]] = {
    Sampling.PENALTIES: {"repetition_penalty": 1.5, "presence_penalty": 0.5},
    Sampling.SEEDED: {"temperature": 1.0, "seed": 7},
}


class MlxServer(OpenAIServer):
    """A mlx_lm.server. ``model`` is its model's folder, without which it does not look at ``adapters``."""

    engine = ENGINE

    def __init__(
        self,
        url: str,
        texts: Texts,
        *,
        space: TokenSpace,
        context: int,
        window: int | None = None,
        whole_entries: bool = False,
        model: Path | None = None,
        adapters: Sequence[Path] = (),
        variables: Mapping[str, str] = NO_VARIABLES,
    ) -> None:
        super().__init__(url)
        self.variables = variables
        self.texts = texts
        self._model = model
        self._adapters = tuple(adapters) if model is not None else ()
        self.version = version_at(self._connection)
        if not self.version:
            self.close()
            raise UnreachableError(f"{url} answers, but not as mlx_lm.server does")
        self.capabilities = Capabilities(
            space=space,
            context=context // texts.cost,
            operations=("complete", "start", "await", "join", "abort", "evict"),
            samplings=(Sampling.PLAIN, *_SAMPLINGS),
            top_logprobs=_TOP_K,
            adapters=len(self._adapters),
            adapter_names=bool(self._adapters),
            cached_counts=True,
            approximate_reuse=texts.cost > 1,
            slots=8,
            window=window,
            whole_entries=whole_entries,
            lasting=LASTING_IN_PYTHON,
        )

    def complete(self, request: Request) -> Observation:
        """Send one request and wait; raises ServerFailure once nothing in the server generates any more."""
        with _deaths_told():
            return super().complete(request)

    def stream(self, request: Request, watcher: Watcher) -> Observation:
        """Send one request and watch its text come: streamed answers have no logprobs."""
        with _deaths_told():
            return super().stream(request, watcher)

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as."""
        body: dict[str, Any] = {
            "prompt": self.texts.joined(request.prompt),
            "max_tokens": request.tokens,
            "temperature": 0.0,
            "logprobs": True,
            "top_logprobs": _TOP_K,
        }
        named = adapter_named(request)
        if named is not None:
            # A request that names no adapter gets by without the folder, and so do its records.
            body |= {"model": str(self._model), "adapters": str(self._adapters[named[0]])}
        return body | _SAMPLINGS.get(request.sampling, {})


def cuts_nothing_back(server: MlxServer) -> bool:
    """Whether of an earlier prompt all is reused but never a part; tried with three prompts on one first token.

    Raises UnreachableError where one of them is refused.
    """
    space = server.capabilities.space
    start = secrets.randbelow(space.count)
    path = tuple(space.first + (start + at) % space.count for at in range(3 * _PART))
    left, longer = (*path[:_PART], *path[2 * _PART :]), path
    try:
        _, forked, grown = (server.complete(Request(prompt, 1)).reused for prompt in (path[: 2 * _PART], left, longer))
    except RequestRefused as refusal:
        raise UnreachableError(f"{server.url} answers, but not as mlx_lm.server does: {refusal.reason}") from None
    return bool(grown) and not forked


@contextmanager
def _deaths_told() -> Iterator[None]:
    """The process outlives its generation thread, and answers every request with an error from then on."""
    try:
        yield
    except RequestRefused as refusal:
        if _DEAD in refusal.reason:
            raise ServerFailure(refusal.reason) from None
        raise


def version_at(connection: Connection) -> str:
    """Versions of mlx-lm and mlx, which only answers tell; empty where it is another server."""
    try:
        answer = connection.post("/v1/completions", {"prompt": "a", "max_tokens": 1, "temperature": 0.0})
        fingerprint = decode(answer, Completion).system_fingerprint
    except RequestRefused:
        return ""
    found = _FINGERPRINT.match(fingerprint or "")
    return f"{found[1]} (mlx {found[2]})" if found else ""
