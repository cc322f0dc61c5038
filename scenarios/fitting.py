"""Fitting a plan to another server than the one it was found on: what that server lacks, and longer prompts for it."""

from __future__ import annotations

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.environment import adapter_letter
from scenarios.operations import Complete, Erase, Operation, Restore, Save, Start, kind
from scenarios.plans import Plan, requests
from scenarios.prompts import Segment


def lacking(plan: Plan, capabilities: Capabilities) -> str | None:
    """What the plan does that the server cannot; None where it can do all of it."""
    unable = {kind(operation) for operation in (*plan.prologue, *plan.operations)} - set(capabilities.operations)
    if unable:
        return f"the plan needs what this server cannot do: {', '.join(sorted(unable))}"
    on = [scale for _, request in requests(plan) for scale in request.scales or () if scale.scale]
    needed = 1 + max((scale.adapter for scale in on), default=-1)
    if needed > capabilities.adapters:
        return f"the plan needs {needed} adapters, the server has {capabilities.adapters}"
    partly = next((scale for scale in on if scale.scale != 1), None)
    if partly is not None and not capabilities.request_scales:
        return f"the plan sets adapter {adapter_letter(partly.adapter)} to {partly.scale:g}, here it is on or off"
    if any(request.salt for _, request in requests(plan)) and not capabilities.salts:
        return "the plan needs tenant keys, which requests to this server cannot name"
    if any(request.slot for _, request in requests(plan)) and not capabilities.pins:
        return "the plan pins requests to slots, which this server does not let them name"
    slots = 1 + max((_slot(operation) for operation in plan.operations), default=0)
    if slots > capabilities.slots:
        return f"the plan names {slots} slots, the server has {capabilities.slots}"
    return None


def _slot(operation: Operation) -> int:
    """The slot that an operation names; the first one where it names none."""
    if isinstance(operation, (Complete, Start, Save, Restore, Erase)):
        return operation.slot or 0
    return 0


def long_enough(plan: Plan, block: int) -> Plan:
    """The plan with prompts that reach over a cache block, where none does; what they share grows alike."""
    longest = max((request.prompt.length for _, request in requests(plan)), default=0)
    if block == 1 or longest > block:
        return plan
    return Plan(tuple(_longer(operation, block) for operation in plan.operations), plan.prologue)


def _longer(operation: Operation, block: int) -> Operation:
    if not isinstance(operation, (Complete, Start)) or operation.prompt.after is not None:
        return operation
    first, *rest = operation.prompt.segments or (Segment("a", 0),)
    segments = (Segment(first.name, first.length + 2 * block), *rest)
    return msgspec.structs.replace(operation, prompt=msgspec.structs.replace(operation.prompt, segments=segments))
