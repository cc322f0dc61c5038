"""Calibration: is the reference the same computation as the target, and how far may legal computation move it?

Every request of a calibration plan runs in one environment, so whatever the target reuses it reuses lawfully.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from fuzzer.differential import Differential, Outcome
from fuzzer.errors import CannotJudge
from oracles.arms import own_spelling
from oracles.comparison import compare
from oracles.judgement import legal_differences
from oracles.noise import Noise, Situation, Tail, measured
from oracles.observations import Done, Failure, Observation
from scenarios.capabilities import Capabilities
from scenarios.environment import AdapterScale, adapter_letter
from scenarios.operations import Complete, Start
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment

_ANSWER = 4
_ROUNDS = 3
_REPEATS = 4


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


def calibrate(
    differential: Differential, numerics: Numerics, checkpoint: Callable[[], None] = lambda: None
) -> Calibration:
    """Run calibration plans in every environment; raises CannotJudge where target and reference are not alike.

    ``checkpoint`` is called between plans and may raise to leave.
    """
    capabilities = differential.target.server.capabilities
    ceiling = CEILING[numerics]
    outcomes: list[Outcome] = []
    for plan in (plan for scales in _environments(capabilities) for plan in _plans(capabilities, scales)):
        outcomes.append(differential.run(plan))
        checkpoint()
    samples = [sample for outcome in outcomes for sample in legal_differences(outcome.ours, outcome.theirs)]
    _check_cold(outcomes, samples, ceiling)
    noise = measured((situation, delta) for situation, delta in samples if delta <= ceiling)
    return Calibration(
        noise=noise,
        hits=sum(outcome.ours.hits for outcome in outcomes),
        beyond=sum(1 for _, delta in samples if delta > ceiling),
        silent_adapters=_silent_adapters(differential, noise),
    )


def recalibrate(differential: Differential, plan: Plan, step: int, numerics: Numerics) -> Noise:
    """The noise with samples taken in the very shapes and environment of one request of a plan.

    Rounding grows with what is computed: a strong adapter, an uncertain token. Before a small difference is called a
    suspect, the same prefix and tail are computed lawfully on fresh roots, alone and beside others.
    """
    setting = own_spelling(plan, step)
    request = plan.operations[step]
    assert isinstance(request, (Complete, Start))
    again = Complete(prompt=_rooted(request.prompt), scales=setting.scales, salt=setting.salt, tokens=request.tokens)
    plans = [_lawful(again, cut) for cut in _cuts(again.prompt)]
    plans += [_together(again)] if plan.overlaps else []
    outcomes = [differential.run(lawful) for lawful in plans for _ in range(_REPEATS)]
    samples = [sample for outcome in outcomes for sample in legal_differences(outcome.ours, outcome.theirs)]
    return differential.noise.widened((at, delta) for at, delta in samples if delta <= CEILING[numerics])


def _rooted(prompt: Prompt) -> Prompt:
    return Prompt(0, (Segment("g", prompt.answer), *prompt.segments) if prompt.answer else prompt.segments)


def _cuts(prompt: Prompt) -> list[int]:
    """Where to split a prompt, so that its tail falls into every class."""
    return sorted({max(1, prompt.length - tail) for tail in (0, 1, 2, 5, 12)})


def _lawful(request: Complete, cut: int) -> Plan:
    """The first ``cut`` tokens of a prompt, then all of it."""
    return Plan((msgspec.structs.replace(request, prompt=_cut(request.prompt, cut), tokens=1), request))


def _cut(prompt: Prompt, length: int) -> Prompt:
    left, segments = length - 1, []
    for segment in prompt.segments:
        segments.append(Segment(segment.name, min(left, segment.length)))
        left -= segments[-1].length
    return Prompt(prompt.root, tuple(segment for segment in segments if segment.length > 0))


def _together(request: Complete) -> Plan:
    """Several such requests at once, cold and on top of what they share with the ones before."""
    prompts = [msgspec.structs.replace(request.prompt, root=root) for root in range(3)]
    before = tuple(
        Complete(prompt=_cut(prompt, max(1, prompt.length - 1)), scales=request.scales) for prompt in prompts
    )
    starts = tuple(
        Start(prompt=prompt, scales=request.scales, tokens=max(8, request.tokens)) for prompt in (*prompts, *prompts)
    )
    return Plan((*before, *starts))


def _environments(capabilities: Capabilities) -> list[tuple[AdapterScale, ...]]:
    """All adapters off, each of them on alone, all of them on: rounding grows with what is on."""
    adapters = range(capabilities.adapters)
    if not capabilities.request_scales:
        return [(), *(((AdapterScale(adapter, 1.0),)) for adapter in adapters if capabilities.adapter_names)]
    if not adapters:
        return [()]
    single = [_on(capabilities, {adapter}) for adapter in adapters]
    return [_on(capabilities, set()), *single, *([_on(capabilities, set(adapters))] if len(single) > 1 else [])]


def _on(capabilities: Capabilities, adapters: set[int]) -> tuple[AdapterScale, ...]:
    return tuple(AdapterScale(other, float(other in adapters)) for other in range(capabilities.adapters))


def _plans(capabilities: Capabilities, scales: tuple[AdapterScale, ...]) -> list[Plan]:
    """Cold, the same again, and longer by tails of each class; then some beside each other."""
    longest = capabilities.context // 2
    starts = [length for length in (5, 20, 60) if length < longest][:_ROUNDS]
    plans = [
        Plan(tuple(Complete(prompt=prompt, scales=scales, tokens=_ANSWER) for prompt in _growing(start)))
        for start in starts
    ]
    if "start" in capabilities.operations:
        plans.append(_together(Complete(prompt=Prompt(0, (Segment("a", 20),)), scales=scales, tokens=8)))
    return plans


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
    single = answers[1 : 1 + capabilities.adapters]
    return tuple(adapter for adapter, answer in enumerate(single) if _delta(answers[0], answer) <= bound)


def _delta(one: Observation | Failure | Done, other: Observation | Failure | Done) -> float:
    if isinstance(one, Observation) and isinstance(other, Observation):
        return compare(one, other).delta
    return 0.0


def in_words(adapters: tuple[int, ...]) -> str:
    """``adapter a``, ``adapters a and b``."""
    letters = [adapter_letter(adapter) for adapter in adapters]
    return f"adapter {letters[0]}" if len(letters) == 1 else f"adapters {' and '.join(letters)}"


__all__ = ["CEILING", "Calibration", "Numerics", "calibrate", "in_words"]
