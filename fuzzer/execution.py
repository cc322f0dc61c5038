"""Execution of a plan on one server: operations in order, one step each."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzer.errors import ServerFailure
from fuzzer.servers.protocol import Request, RequestRefused, Server
from oracles.observations import Failure, Observation, Step, Trace
from scenarios.operations import Operation
from scenarios.plans import Plan
from scenarios.prompts import prompt_tokens


def request_of(operation: Operation, prompt: tuple[int, ...], *, reuse: bool = True) -> Request:
    """How ``operation`` is asked of a server."""
    return Request(prompt, operation.tokens, operation.scales, reuse)


def run_plan(server: Server, plan: Plan, roots: Sequence[int], *, reuse: bool = True) -> Trace:
    """Run ``plan`` with root ``r`` bound to token ``roots[r]``; without ``reuse``, every request bypasses the cache.

    A server that stops answering ends the trace with the failure of the step that it died in.
    """
    steps: list[Step] = []
    for operation in plan.operations:
        prompt = prompt_tokens(operation.prompt, roots, server.capabilities.space)
        try:
            outcome = _outcome(server, request_of(operation, prompt, reuse=reuse))
        except ServerFailure as failure:
            steps.append(Step(prompt, operation.environment, operation.tokens, Failure(str(failure), dead=True)))
            break
        steps.append(Step(prompt, operation.environment, operation.tokens, outcome))
    return Trace(steps)


def _outcome(server: Server, request: Request) -> Observation | Failure:
    try:
        return server.complete(request)
    except RequestRefused as refusal:
        return Failure(refusal.reason, refusal.status)
