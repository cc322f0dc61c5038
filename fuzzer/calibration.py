"""Calibration: is the reference the same computation as the target, and how far may legal computation move it?

Every request of a calibration plan runs in one environment, so whatever the target reuses it reuses lawfully.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from fuzzer.differential import Differential, Outcome
from fuzzer.errors import CannotJudge
from oracles.comparison import compare
from oracles.judgement import legal_differences
from oracles.noise import Noise, Situation, Tail, measured
from oracles.observations import Done, Failure, Observation
from scenarios.capabilities import Capabilities
from scenarios.environment import AdapterScale, adapter_letter
from scenarios.operations import Complete
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment

_ANSWER = 4
_ROUNDS = 3


class Numerics(StrEnum):
    """How the target computes."""

    EXACT = "exact"
    """Launched to be as bit-exact as the engine can be."""
    DEFAULT = "default"


CEILING = {Numerics.EXACT: 1e-2, Numerics.DEFAULT: 0.6}
"""Differences above are not rounding, and two servers that differ by more when cold are not the same computation.

Measured on llama-server: 4e-5 at most in exact numerics, 0.44 on a quantised model in default ones.
"""


class Calibration(msgspec.Struct, frozen=True):
    """What was measured before fuzzing."""

    noise: Noise
    hits: int
    """Requests that the target answered with reused tokens."""
    beyond: int
    """Samples too far apart to be rounding; they bound nothing."""
    silent_adapters: tuple[int, ...]
    """Adapters that move the logprobs by no more than the bound: to be judged by reuse accounting only."""


def calibrate(differential: Differential, numerics: Numerics) -> Calibration:
    """Run calibration plans in every environment; raises CannotJudge where target and reference are not alike."""
    capabilities = differential.target.server.capabilities
    ceiling = CEILING[numerics]
    outcomes = [
        differential.run(plan) for scales in _environments(capabilities) for plan in _plans(capabilities, scales)
    ]
    samples = [sample for outcome in outcomes for sample in legal_differences(outcome.ours, outcome.theirs)]
    _check_cold(outcomes, samples, ceiling)
    noise = measured((situation, delta) for situation, delta in samples if delta <= ceiling)
    return Calibration(
        noise=noise,
        hits=sum(outcome.ours.hits for outcome in outcomes),
        beyond=sum(1 for _, delta in samples if delta > ceiling),
        silent_adapters=_silent_adapters(differential, noise),
    )


def _environments(capabilities: Capabilities) -> list[tuple[AdapterScale, ...]]:
    off = tuple(AdapterScale(adapter, 0.0) for adapter in range(capabilities.adapters))
    if not capabilities.request_scales:
        return [()]
    return [off] + [_only(capabilities, adapter) for adapter in range(capabilities.adapters)]


def _only(capabilities: Capabilities, adapter: int) -> tuple[AdapterScale, ...]:
    return tuple(AdapterScale(other, float(other == adapter)) for other in range(capabilities.adapters))


def _plans(capabilities: Capabilities, scales: tuple[AdapterScale, ...]) -> list[Plan]:
    """Cold, the same again, and longer by tails of each class."""
    longest = capabilities.context // 2
    starts = [length for length in (5, 20, 60) if length < longest][:_ROUNDS]
    return [
        Plan(tuple(Complete(prompt=prompt, scales=scales, tokens=_ANSWER) for prompt in _growing(start)))
        for start in starts
    ]


def _growing(start: int) -> list[Prompt]:
    trunk = Segment("a", start)
    tails = (0, 0, 1, 2, 4, 8, 20, 21)
    return [Prompt(0, (trunk, Segment("b", tail)) if tail else (trunk,)) for tail in tails]


def _check_cold(outcomes: list[Outcome], samples: list[tuple[Situation, float]], ceiling: float) -> None:
    refused = next((step.outcome for outcome in outcomes for step in outcome.ours.steps), None)
    if not samples and isinstance(refused, Failure):
        raise CannotJudge(f"the target refuses plain requests: {refused.reason}")
    cold = [delta for situation, delta in samples if situation == Situation(Tail.COLD)]
    if cold and max(cold) > ceiling:
        raise CannotJudge(
            f"target and reference differ by {max(cold):.2g} on a request that neither has seen: not the same model, "
            "adapters or numerics"
        )


def _silent_adapters(differential: Differential, noise: Noise) -> tuple[int, ...]:
    capabilities = differential.target.server.capabilities
    environments = _environments(capabilities)
    plan = Plan(
        tuple(Complete(prompt=Prompt(0, (Segment("a", 20),)), scales=scales, tokens=_ANSWER) for scales in environments)
    )
    answers = [step.outcome for step in differential.run(plan).theirs.steps]
    bound = noise.bound()
    return tuple(adapter for adapter, answer in enumerate(answers[1:]) if _delta(answers[0], answer) <= bound)


def _delta(one: Observation | Failure | Done, other: Observation | Failure | Done) -> float:
    if isinstance(one, Observation) and isinstance(other, Observation):
        return compare(one, other).delta
    return 0.0


def in_words(adapters: tuple[int, ...]) -> str:
    """``adapter a``, ``adapters a and b``."""
    letters = [adapter_letter(adapter) for adapter in adapters]
    return f"adapter {letters[0]}" if len(letters) == 1 else f"adapters {' and '.join(letters)}"


__all__ = ["CEILING", "Calibration", "Numerics", "calibrate", "in_words"]
