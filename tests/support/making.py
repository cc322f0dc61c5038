"""Short ways to make plans and observations, and Hypothesis strategies for them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st

from oracles.observations import Failure, Observation, Position, Step, TokenLogprob, Trace
from scenarios.environment import AdapterScale, environment
from scenarios.operations import Complete, Operation, Start
from scenarios.plans import Plan
from scenarios.plans import requests as requests_in
from scenarios.prompts import Prompt, Segment, TokenSpace

# A busy machine is no reason to fail, and a test says the same each time.
settings.register_profile("steady", deadline=None, derandomize=True, database=None, max_examples=60)
settings.load_profile("steady")

SPACE = TokenSpace(first=4, count=2044)


def path(root: int, *segments: tuple[str, int]) -> Prompt:
    """A prompt: ``path(0, ("a", 5), ("b", 2))``."""
    return Prompt(root, tuple(Segment(name, length) for name, length in segments))


def at_scales(*scales: float) -> tuple[AdapterScale, ...]:
    """Adapters 0, 1, ... at these scales."""
    return tuple(AdapterScale(adapter, scale) for adapter, scale in enumerate(scales))


def ask(prompt: Prompt, *scales: float, tokens: int = 1) -> Complete:
    """A completion with these scales of adapters 0, 1, ..."""
    return Complete(prompt=prompt, scales=at_scales(*scales), tokens=tokens)


def plan_of(*operations: Operation) -> Plan:
    """A plan without a prologue."""
    return Plan(operations)


def asked(plan: Plan) -> list[Complete | Start]:
    """The requests of a plan."""
    return [request for _, request in requests_in(plan)]


def position(token: int, top: dict[int, float]) -> Position:
    """A chosen token and its top-k list."""
    return Position(token, [TokenLogprob(token, logprob) for token, logprob in top.items()])


def answer(*positions: Position, reused: int | None = None, computed: int | None = None) -> Observation:
    """An answer to one request."""
    return Observation(list(positions), reused, computed)


def step(outcome: Observation | Failure, *, prompt: Sequence[int] = (1,), asked: int | None = None) -> Step:
    """A request and what came of it."""
    length = len(outcome.positions) if isinstance(outcome, Observation) else 1
    return Step(
        prompt=tuple(prompt), environment=environment(()), asked=length if asked is None else asked, outcome=outcome
    )


def trace(*outcomes: Observation | Failure) -> Trace:
    """A run of as many requests."""
    return Trace([step(outcome) for outcome in outcomes])


segments = st.builds(Segment, st.sampled_from("abc"), st.integers(1, 12))
prompts = st.builds(Prompt, st.integers(0, 2), st.lists(segments, max_size=3).map(tuple))
spellings = st.tuples(*[st.sampled_from([0.0, 0.01, 0.25, 0.5, 1.0])] * 2).map(lambda pair: at_scales(*pair))
requests = st.builds(
    lambda prompt, scales, tokens: Complete(prompt=prompt, scales=scales, tokens=tokens),
    prompts,
    spellings,
    st.integers(1, 8),
)
plans = st.lists(requests, min_size=1, max_size=6).map(lambda operations: Plan(tuple(operations)))
