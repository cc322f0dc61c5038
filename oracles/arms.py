"""Arms: variants of a plan in which the wrong request must be right if the plan's history is to blame."""

from __future__ import annotations

import msgspec

from scenarios.entitlement import TELLING, entitlements
from scenarios.environment import AdapterScale, Environment
from scenarios.operations import Complete, Evict, Operation, Reload, ReloadWeights, Sampling, SetScales, Start, Unload
from scenarios.plans import Plan, references, replaced, requests, without


class Setting(msgspec.Struct, frozen=True):
    """An environment as a request can ask for it."""

    scales: tuple[AdapterScale, ...] | None
    salt: str = ""


def own_spelling(plan: Plan, step: int) -> Setting:
    """The environment of a request, every adapter that the plan speaks of named."""
    environment = entitlements(plan)[step] or Environment()
    return Setting(_spelled(environment, _adapters(plan)), environment.salt)


def with_setting(plan: Plan, step: int, setting: Setting) -> Plan:
    """The plan with one request in another environment."""
    request = plan.operations[step]
    assert isinstance(request, (Complete, Start))
    return replaced(plan, step, msgspec.structs.replace(request, scales=setting.scales, salt=setting.salt))


def control_arm(plan: Plan, wrong: int) -> Plan | None:
    """The plan with every environment set to the wrong request's own, so that the same tokens are reused lawfully.

    Earlier requests sample as the wrong one does, too: what another way of sampling leaves behind is in no key. None
    where that is the plan itself.
    """
    environment = entitlements(plan)[wrong] or Environment()
    setting = own_spelling(plan, wrong)
    alike = [_sampling_as(operation, plan.operations[wrong]) for operation in plan.operations]
    arm = Plan(
        tuple(_in(operation, setting, environment) for operation in alike),
        tuple(_in(operation, setting, environment) for operation in plan.prologue),
    )
    arm = _with_versions(arm, environment)
    return None if arm == plan else arm


def in_other_words(arm: Plan, plan: Plan) -> bool:
    """Whether an arm asks for what the plan asks for, in the same environments, and only spells some otherwise."""
    return entitlements(arm) == entitlements(plan) and _samplings(arm) == _samplings(plan)


def _samplings(plan: Plan) -> list[Sampling]:
    return [request.sampling for _, request in requests(plan)]


def alone(plan: Plan, wrong: int) -> tuple[Plan, int] | None:
    """The wrong request without its history, and its step; None for a prompt that goes on after an answer."""
    if references(plan.operations[wrong]):
        return None
    setters = [at for at, operation in enumerate(plan.operations[:wrong]) if isinstance(operation, TELLING)]
    lone = without(plan, [at for at in range(len(plan.operations)) if at != wrong and at not in setters])
    return lone, len(setters)


def respelled(plan: Plan, wrong: int, adapters: int) -> Plan:
    """The plan in other words: its wrong request names each of the server's adapters, which are replaced in place."""
    environment = entitlements(plan)[wrong] or Environment()
    named = with_setting(plan, wrong, Setting(_spelled(environment, list(range(adapters))), environment.salt))
    return msgspec.structs.replace(named, operations=tuple(_in_place(operation) for operation in named.operations))


def _in_place(operation: Operation) -> Operation:
    return Reload(operation.adapter, operation.version) if isinstance(operation, Unload) else operation


def _sampling_as(operation: Operation, wrong: Operation) -> Operation:
    if isinstance(operation, (Complete, Start)) and isinstance(wrong, (Complete, Start)):
        return msgspec.structs.replace(operation, sampling=wrong.sampling)
    return operation


def _in(operation: Operation, setting: Setting, environment: Environment) -> Operation:
    match operation:
        case Complete() | Start():
            scales = None if operation.scales is None else setting.scales
            return msgspec.structs.replace(operation, scales=scales, salt=setting.salt)
        case SetScales():
            return SetScales(setting.scales or ())
        case Evict(scales=scales):
            return operation if scales is None else msgspec.structs.replace(operation, scales=setting.scales)
        case Reload(adapter=adapter) | Unload(adapter=adapter):
            return msgspec.structs.replace(operation, version=_version(environment, adapter))
        case ReloadWeights():
            return ReloadWeights(environment.weights)
        case _:
            return operation


def _with_versions(arm: Plan, environment: Environment) -> Plan:
    """Weights that the request needs are there from the beginning."""
    loads: list[Operation] = [Reload(scale.adapter, scale.version) for scale in environment.scales if scale.version]
    loads += [ReloadWeights(environment.weights)] if environment.weights else []
    prologue = (*(load for load in loads if load not in arm.prologue), *arm.prologue)
    return msgspec.structs.replace(arm, prologue=prologue)


def _version(environment: Environment, adapter: int) -> int:
    return next((scale.version for scale in environment.scales if scale.adapter == adapter), 0)


def _adapters(plan: Plan) -> list[int]:
    named = {scale.adapter for _, request in requests(plan) for scale in request.scales or ()}
    for operation in (*plan.prologue, *plan.operations):
        named |= {scale.adapter for scale in operation.scales} if isinstance(operation, SetScales) else set()
    return sorted(named)


def _spelled(environment: Environment, adapters: list[int]) -> tuple[AdapterScale, ...]:
    on = {scale.adapter: scale.scale for scale in environment.scales}
    return tuple(AdapterScale(adapter, on.get(adapter, 0.0)) for adapter in sorted({*adapters, *on}))
