"""Attribution: which elements of a minimal plan are necessary, and which earlier step's state was reused.

Each element of a plan can be neutralised while everything else stays: what must stay for the answer to be wrong is
the explanation of the bug and its fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from scenarios.environment import AdapterScale, Environment
from scenarios.operations import Operation
from scenarios.plans import Plan, replaced, without
from scenarios.prompts import common_prefix


class Element(StrEnum):
    """What a stale answer can depend on."""

    SHARED_PREFIX = "shared-prefix"
    """An earlier request whose prompt begins alike."""
    SCALE_CHANGE = "scale-change"
    """The earlier request ran the same adapters at other scales, or none of them."""
    ADAPTER_CHANGE = "adapter-change"
    """The earlier request ran another adapter."""
    REQUEST_BETWEEN = "request-between"
    """Another request runs in between."""
    SETTING_BETWEEN = "setting-between"
    """The request in between runs in the environment of the wrong one."""


class Ablation(msgspec.Struct, frozen=True):
    """A minimal plan with one element neutralised."""

    element: Element
    plan: Plan
    step: int
    """Index of the wrong request in ``plan``."""


class StaleSource(msgspec.Struct, frozen=True):
    """The earlier step whose state the wrong answer was built on."""

    step: int
    environment: Environment
    """In which that state was computed."""


def donors(prompts: Sequence[Sequence[int]], wrong: int, reused: int | None) -> list[int]:
    """Earlier steps whose tokens cover what was reused, the latest first; any shared prefix where that is unknown."""
    least = max(reused or 1, 1)
    steps = [at for at in range(wrong) if common_prefix(prompts[at], prompts[wrong]) >= min(least, len(prompts[at]))]
    return [at for at in reversed(steps) if common_prefix(prompts[at], prompts[wrong]) > 0]


def control_arm(plan: Plan, wrong: int) -> Plan | None:
    """The plan with every environment set to the wrong request's own; None where nothing would change."""
    scales = plan.operations[wrong].scales
    arm = plan
    for at, operation in enumerate(plan.operations):
        arm = replaced(arm, at, msgspec.structs.replace(operation, scales=scales))
    return None if arm == plan else arm


def alone(plan: Plan, wrong: int) -> Plan:
    """The wrong request without its history."""
    return without(plan, range(wrong))


def ablations(plan: Plan, wrong: int, donor: int | None) -> list[Ablation]:
    """Every element of the plan, neutralised."""
    if donor is None:
        return []
    found = [Ablation(Element.SHARED_PREFIX, _moved_away(plan, donor), wrong)]
    own, other = plan.operations[wrong], plan.operations[donor]
    if own.environment != other.environment:
        found.append(Ablation(change_between(other, own), _at_scales_of(plan, donor, own), wrong))
    if donor + 1 < wrong:
        between = range(donor + 1, wrong)
        found.append(Ablation(Element.REQUEST_BETWEEN, without(plan, between), donor + 1))
        found += _setting_between(plan, wrong, donor)
    return found


def change_between(donor: Operation, wrong: Operation) -> Element:
    """Whether two requests differ in how strong their adapters are, or in which are on at all."""
    first = {scale.adapter for scale in donor.environment.scales}
    second = {scale.adapter for scale in wrong.environment.scales}
    return Element.SCALE_CHANGE if first <= second or second <= first else Element.ADAPTER_CHANGE


def with_environment(plan: Plan, step: int, scales: tuple[AdapterScale, ...]) -> Plan:
    """The plan with other scales in one request."""
    return replaced(plan, step, msgspec.structs.replace(plan.operations[step], scales=scales))


def fingerprint(engine: str, oracle: str, elements: Sequence[Element]) -> str:
    """Six hex digits that name a bug on an engine, whatever its lengths, scales and seeds."""
    identity = "\n".join([engine, oracle, *sorted(elements)])
    return hashlib.blake2b(identity.encode(), digest_size=3).hexdigest()


def _moved_away(plan: Plan, step: int) -> Plan:
    operation = plan.operations[step]
    prompt = msgspec.structs.replace(operation.prompt, root=plan.roots)
    return replaced(plan, step, msgspec.structs.replace(operation, prompt=prompt))


def _at_scales_of(plan: Plan, step: int, other: Operation) -> Plan:
    return with_environment(plan, step, other.scales)


def _setting_between(plan: Plan, wrong: int, donor: int) -> list[Ablation]:
    other = plan.operations[donor]
    changed = plan
    for at in range(donor + 1, wrong):
        changed = _at_scales_of(changed, at, other)
    return [] if changed == plan else [Ablation(Element.SETTING_BETWEEN, changed, wrong)]
