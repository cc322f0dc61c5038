"""Explanation: which elements of a minimal plan must stay, whose state was reused, and what to do about it."""

from __future__ import annotations

import msgspec

from fuzzer.differential import Outcome
from fuzzer.triage.lab import Lab
from fuzzer.triage.trials import ONCE, Run, Trials, wrong_step
from oracles.arms import own_spelling, with_setting
from oracles.attribution import (
    Element,
    StaleSource,
    ablations,
    donors,
    going_on,
    inherent,
    plainly,
    relation,
    spelling_of,
)
from oracles.judgement import Oracle
from reports.record import AblationRecord, Mitigation
from scenarios.entitlement import entitlements
from scenarios.environment import AdapterScale
from scenarios.plans import Plan, references, requests

_OTHER_SCALES = (0.25, 0.75)
"""Scales that no reduced plan has; one of them differs from any two others."""


class Explanation(msgspec.Struct, frozen=True):
    """Why the minimal plan fails."""

    necessary: tuple[Element, ...]
    source: StaleSource | None
    donor: int | None = None
    """The earlier step that most likely lent its state, where no run could prove it."""
    ablations: tuple[AblationRecord, ...] = ()
    """Every element that was tried, also those that can go."""
    identity: tuple[Element, ...] = ()
    """What makes it this bug and no other: the necessary elements, however the slot came to be taken."""


def explain(
    run: Run,
    plan: Plan,
    wrong: int,
    outcome: Outcome,
    trials: Trials,
    *,
    spelled_adapters: int = 0,
    slots: int = 1,
) -> Explanation:
    """Ablate each element and name the stale source; ``outcome`` is a run of ``plan`` that was wrong.

    ``spelled_adapters`` is how many adapters a request may name or not, ``slots`` how many requests the server holds.
    """
    why = _explained(run, plan, wrong, outcome, trials, spelled_adapters)
    plain = plainly(plan, wrong, why.donor, why.necessary, slots)
    if plain is None:
        return why
    again = run(plain.plan)
    if wrong_step(again, outcome.suspects[0].oracle) != plain.step or _lost(outcome, wrong, again, plain.step):
        return why
    # One bug is one row: a pin, a chat or an overlap that only took the slot would each make another of it.
    identity = _explained(run, plain.plan, plain.step, again, ONCE, spelled_adapters).necessary
    return msgspec.structs.replace(why, identity=identity)


def _lost(outcome: Outcome, wrong: int, again: Outcome, step: int) -> bool:
    """Whether the wrong request reused something before and reuses nothing now, so that it is wrong otherwise."""
    return bool(outcome.arm(wrong).reused) and not again.arm(step).reused


def _explained(
    run: Run, plan: Plan, wrong: int, outcome: Outcome, trials: Trials, spelled_adapters: int
) -> Explanation:
    source = stale_source(run, plan, wrong, outcome, trials)
    candidates = _candidates(plan, wrong, outcome)
    donor = source.step if source is not None else next(iter(candidates), None)
    tried = [
        (ablation.element, not wrong_again(run, ablation.plan, ablation.step, trials))
        for ablation in ablations(plan, wrong, donor)
    ]
    tried += _cut_back(run, outcome, donor, wrong, trials)
    necessary = [element for element, clean in tried if clean] + inherent(plan, wrong)
    necessary += _before(plan, donor)
    spelling = spelling_of(plan.operations[wrong], spelled_adapters)
    if spelling is not None and len(plan.operations) == 1:
        necessary.append(spelling)
    table = tuple(AblationRecord(element, clean) for element, clean in tried)
    return Explanation(tuple(necessary), source, donor, table, tuple(necessary))


def _before(plan: Plan, donor: int | None) -> list[Element]:
    """Nothing can go from a minimal plan, so what runs before the donor has to."""
    earlier = donor is not None and any(at < donor for at, _ in requests(plan))
    return [Element.REQUEST_BEFORE] if earlier else []


def _cut_back(run: Run, outcome: Outcome, donor: int | None, wrong: int, trials: Trials) -> list[tuple[Element, bool]]:
    """Whether it matters that the wrong prompt does not go on from all that the donor left in the cache."""
    if donor is None:
        return []
    steps = outcome.ours.steps
    lender = steps[donor].observation
    # The last token of an answer was chosen, but nothing was computed from it.
    computed = steps[donor].prompt + (lender.tokens[:-1] if lender is not None else ())
    if relation(computed, steps[wrong].prompt) is None:
        return []
    plain = going_on(outcome.plan, wrong, donor)
    return [(Element.CUT_BACK, plain is None or not wrong_again(run, plain, wrong, trials))]


def mitigations(
    lab: Lab, plan: Plan, wrong: int, switches: dict[str, tuple[str, ...]], trials: Trials
) -> tuple[Mitigation, ...]:
    """Try each switch (words for a reader, flags for the server) on a fresh server of ours; none on another's."""
    if not lab.has_fresh:
        return ()
    return tuple(Mitigation(words, _clean_with(lab, plan, wrong, flags, trials)) for words, flags in switches.items())


def stale_source(run: Run, plan: Plan, wrong: int, outcome: Outcome, trials: Trials) -> StaleSource | None:
    """The earlier step whose environment decides the wrong answer: right at the request's own, another at a third."""
    environments = entitlements(plan)
    for step in _candidates(plan, wrong, outcome):
        environment = environments[step]
        if (
            environment is not None
            and environment != environments[wrong]
            and _decides(run, plan, wrong, step, outcome.arm(wrong).reused, trials)
        ):
            return StaleSource(step, environment)
    return None


def wrong_again(run: Run, plan: Plan, step: int, trials: Trials) -> bool:
    """Whether a step is wrong; in any of the runs where timing decides."""
    return any(not run(plan).arm(step).clean for _ in range(_runs(plan, trials)))


def _runs(plan: Plan, trials: Trials) -> int:
    return trials.of if plan.overlaps else 1


def _decides(run: Run, plan: Plan, wrong: int, step: int, reused: int | None, trials: Trials) -> bool:
    """Whether the answer is right on top of as much reuse once ``step`` runs at its setting, and wrong at a third."""
    lawful = with_setting(plan, step, own_spelling(plan, wrong))
    own = [run(lawful).arm(wrong) for _ in range(_runs(lawful, trials))]
    if not all(arm.clean and (arm.reused or 0) >= (reused or 0) for arm in own):
        return False
    third = _third_scales(plan, wrong, step)
    if third is None:
        return True
    setting = msgspec.structs.replace(own_spelling(plan, step), scales=third)
    return wrong_again(run, with_setting(plan, step, setting), wrong, trials)


def _third_scales(plan: Plan, wrong: int, step: int) -> tuple[AdapterScale, ...] | None:
    taken = {own_spelling(plan, step).scales, own_spelling(plan, wrong).scales}
    spelling = own_spelling(plan, step).scales or ()
    others = [tuple(AdapterScale(scale.adapter, other) for scale in spelling) for other in _OTHER_SCALES]
    return next((other for other in others if other and other not in taken), None)


def _candidates(plan: Plan, wrong: int, outcome: Outcome) -> list[int]:
    if outcome.suspects[0].oracle is Oracle.HEALTH or len(outcome.ours.steps) <= wrong:
        return []
    grown = set(references(plan.operations[wrong]))
    return [step for step in donors(outcome.ours, wrong) if step not in grown] or list(grown)


def _clean_with(lab: Lab, plan: Plan, wrong: int, flags: tuple[str, ...], trials: Trials) -> bool:
    with lab.fresh(*flags) as fresh:
        return not wrong_again(fresh.run, plan, wrong, trials)
