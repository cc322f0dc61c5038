"""Explanation: which elements of a minimal plan must stay, whose state was reused, and what to do about it."""

from __future__ import annotations

import msgspec

from fuzzer.differential import Differential, Outcome
from fuzzer.triage.lab import Lab
from oracles.attribution import Element, StaleSource, ablations, donors, with_environment
from oracles.observations import Observation
from reports.record import AblationRecord, Mitigation
from scenarios.environment import AdapterScale
from scenarios.plans import Plan

_OTHER_SCALES = (0.25, 0.75)
"""Scales that no reduced plan has; one of them differs from any two others."""


class Explanation(msgspec.Struct, frozen=True):
    """Why the minimal plan fails."""

    necessary: tuple[Element, ...]
    source: StaleSource | None
    ablations: tuple[AblationRecord, ...] = ()
    """Every element that was tried, also those that can go."""


def explain(live: Differential, plan: Plan, wrong: int, outcome: Outcome) -> Explanation:
    """Ablate each element and name the stale source; ``outcome`` is a run of ``plan`` that was wrong."""
    source = stale_source(live, plan, wrong, outcome)
    donor = source.step if source is not None else _likely_donor(outcome, wrong)
    tried = [
        (ablation.element, live.run(ablation.plan).arm(ablation.step).clean)
        for ablation in ablations(plan, wrong, donor)
    ]
    necessary = tuple(element for element, clean in tried if clean)
    return Explanation(necessary, source, tuple(AblationRecord(element, clean) for element, clean in tried))


def mitigations(lab: Lab, plan: Plan, wrong: int, switches: dict[str, tuple[str, ...]]) -> tuple[Mitigation, ...]:
    """Try each switch (words for a reader, flags for the server) on a fresh server of ours; none on another's."""
    if not lab.has_fresh:
        return ()
    return tuple(Mitigation(words, _clean_with(lab, plan, wrong, flags)) for words, flags in switches.items())


def stale_source(live: Differential, plan: Plan, wrong: int, outcome: Outcome) -> StaleSource | None:
    """The earlier step whose environment decides the wrong answer: right at the request's own, another at a third."""
    for step in _candidates(outcome, wrong):
        operation = plan.operations[step]
        if operation.environment == plan.operations[wrong].environment:
            continue
        if _decides(live, plan, wrong, step):
            return StaleSource(step, operation.environment)
    return None


def _decides(live: Differential, plan: Plan, wrong: int, step: int) -> bool:
    lawful = live.run(with_environment(plan, step, plan.operations[wrong].scales))
    if not lawful.arm(wrong).clean:
        return False
    third = _third_scales(plan, wrong, step)
    return third is None or not live.run(with_environment(plan, step, third)).arm(wrong).clean


def _third_scales(plan: Plan, wrong: int, step: int) -> tuple[AdapterScale, ...] | None:
    taken = {plan.operations[step].scales, plan.operations[wrong].scales}
    spelling = plan.operations[step].scales
    others = [tuple(AdapterScale(scale.adapter, other) for scale in spelling) for other in _OTHER_SCALES]
    return next((other for other in others if other and other not in taken), None)


def _candidates(outcome: Outcome, wrong: int) -> list[int]:
    answer = outcome.ours.steps[wrong].outcome
    reused = answer.reused if isinstance(answer, Observation) else None
    return donors([step.prompt for step in outcome.ours.steps], wrong, reused)


def _likely_donor(outcome: Outcome, wrong: int) -> int | None:
    return next(iter(_candidates(outcome, wrong)), None)


def _clean_with(lab: Lab, plan: Plan, wrong: int, flags: tuple[str, ...]) -> bool:
    with lab.fresh(*flags) as fresh:
        return fresh.run(plan).arm(wrong).clean
