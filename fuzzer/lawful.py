"""Lawful plans: every request in one environment, so that whatever is reused is reused lawfully."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from oracles.arms import own_spelling
from scenarios.capabilities import Capabilities
from scenarios.environment import AdapterScale
from scenarios.operations import Complete, Start
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment

_ANSWER = 4
_STARTS = (5, 20, 60, 9, 33, 90, 13, 40, 75, 7, 27, 110)
"""Tokens of what is asked first, and then grown ..."""
_FURTHER_STARTS = (0, 3, 50, 16, 100, 2, 32, 66, 1, 11, 48, 84)
"""... and where those do not show how the target rounds."""
_BEYOND = 40
"""Tokens after which kernels compute a batch in another way than a handful."""
_GROWN = 12
"""How many prompts are grown in all environments together: each ends in one long tail (see ``oracles.noise.FEW``)."""


def plans_like(plan: Plan, step: int) -> list[Plan]:
    """The prefix and the tails of one request of a plan, in its environment; also beside others where that overlaps."""
    again = _asked_again(plan, step)
    plans = [plan for cut in _cuts(again.prompt) for plan in (_lawful(again, cut), _cut_back(again, cut))]
    return [*plans, _together(again)] if plan.overlaps else plans


def same_reuse(plan: Plan, step: int, reused: int) -> Plan:
    """The prompt of one request on top of a lawful prefix of ``reused`` tokens; the request is step 1."""
    again = _asked_again(plan, step)
    return _lawful(again, max(1, min(reused, again.prompt.length)))


def _asked_again(plan: Plan, step: int) -> Complete:
    """One request of a plan on a root of its own, in its own environment spelled out."""
    setting = own_spelling(plan, step)
    request = plan.operations[step]
    assert isinstance(request, (Complete, Start))
    return Complete(prompt=_rooted(request.prompt), scales=setting.scales, salt=setting.salt, tokens=request.tokens)


def _rooted(prompt: Prompt) -> Prompt:
    return Prompt(0, (Segment("g", prompt.answer), *prompt.segments) if prompt.answer else prompt.segments)


def _cuts(prompt: Prompt) -> list[int]:
    """Where to split a prompt, so that its tail falls into every class."""
    return sorted({max(1, prompt.length - tail) for tail in (0, 1, 2, 5, 12)})


def _lawful(request: Complete, cut: int) -> Plan:
    """The first ``cut`` tokens of a prompt, then all of it."""
    return Plan((msgspec.structs.replace(request, prompt=_cut(request.prompt, cut), tokens=1), request))


def _cut_back(request: Complete, cut: int) -> Plan:
    """A prompt on top of what a longer one left: the first ``cut`` tokens were computed in a larger batch."""
    beginning = _cut(request.prompt, cut)
    longer = Prompt(beginning.root, (*beginning.segments, Segment("h", _BEYOND)))
    return Plan((msgspec.structs.replace(request, prompt=longer, tokens=1), request))


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


def environments(capabilities: Capabilities) -> list[tuple[AdapterScale, ...]]:
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


def calibration_plans(capabilities: Capabilities, scales: tuple[AdapterScale, ...]) -> list[Plan]:
    """Cold, the same again, and longer by tails of each class; then some beside each other."""
    starts = _fitting(_STARTS, capabilities)[: _GROWN // len(environments(capabilities)) or 1]
    plans = [_grown(start, scales) for start in starts]
    if "start" in capabilities.operations:
        plans.append(_together(Complete(prompt=Prompt(0, (Segment("a", 20),)), scales=scales, tokens=8)))
    return plans


def further_plans(capabilities: Capabilities) -> list[Plan]:
    """More of those that grow, the environments in turn."""
    spellings = environments(capabilities)
    starts = _fitting(_FURTHER_STARTS, capabilities)
    return [_grown(start, spellings[number % len(spellings)]) for number, start in enumerate(starts)]


def _fitting(starts: Sequence[int], capabilities: Capabilities) -> list[int]:
    return [start for start in starts if start < capabilities.context // 2]


def _grown(start: int, scales: tuple[AdapterScale, ...]) -> Plan:
    return Plan(tuple(Complete(prompt=prompt, scales=scales, tokens=_ANSWER) for prompt in _growing(start)))


def check_plan(scales: tuple[AdapterScale, ...]) -> Plan:
    """One request of each class: cold, the same again, and longer by a short and by a long tail."""
    trunk = Segment("a", 24)
    prompts = [Prompt(0, (trunk, Segment("b", tail)) if tail else (trunk,)) for tail in (0, 0, 5, 17)]
    return Plan(tuple(Complete(prompt=prompt, scales=scales, tokens=_ANSWER) for prompt in prompts))


def _growing(start: int) -> list[Prompt]:
    """Longer and longer, then cut back: what a longer prompt left was computed in a larger batch."""
    trunk = (Segment("a", start),) if start else ()
    grown = [Prompt(0, (*trunk, Segment("b", tail)) if tail else trunk) for tail in (0, 0, 1, 2, 4, 8, 20, 21)]
    return [*grown, *(Prompt(0, (*trunk, Segment("c", tail))) for tail in (1, _BEYOND))]
