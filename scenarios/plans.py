"""Plans: finite sequences of operations, immutable, serialisable, runnable on any server with the capabilities."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from scenarios.operations import Operation


class Plan(msgspec.Struct, frozen=True):
    """What is done, in order, after a prologue that sets everything the operations rely on."""

    operations: tuple[Operation, ...]
    prologue: tuple[Operation, ...] = ()

    @property
    def roots(self) -> int:
        """How many root tokens a run of this plan binds."""
        return 1 + max((operation.prompt.root for operation in self.operations), default=-1)


def without(plan: Plan, steps: Collection[int]) -> Plan:
    """The plan with the operations at these indexes left out."""
    kept = tuple(operation for at, operation in enumerate(plan.operations) if at not in steps)
    return msgspec.structs.replace(plan, operations=kept)


def replaced(plan: Plan, step: int, operation: Operation) -> Plan:
    """The plan with another operation at index ``step``."""
    operations = (*plan.operations[:step], operation, *plan.operations[step + 1 :])
    return msgspec.structs.replace(plan, operations=operations)


def joined(plans: Collection[Plan]) -> Plan:
    """One plan that does what these do one after another; roots stay distinct between them."""
    operations: list[Operation] = []
    offset = 0
    for plan in plans:
        operations += [_moved(operation, offset) for operation in plan.operations]
        offset += plan.roots
    return Plan(tuple(operations))


def compact(plan: Plan) -> Plan:
    """The same plan with its roots numbered in order of first use."""
    order: dict[int, int] = {}
    for operation in plan.operations:
        order.setdefault(operation.prompt.root, len(order))
    renumbered = tuple(_with_root(operation, order[operation.prompt.root]) for operation in plan.operations)
    return msgspec.structs.replace(plan, operations=renumbered)


def _moved(operation: Operation, offset: int) -> Operation:
    return _with_root(operation, operation.prompt.root + offset)


def _with_root(operation: Operation, root: int) -> Operation:
    prompt = msgspec.structs.replace(operation.prompt, root=root)
    return msgspec.structs.replace(operation, prompt=prompt)


def encode(plan: Plan) -> bytes:
    """JSON of a plan."""
    return msgspec.json.encode(plan)


def decode(text: bytes | str) -> Plan:
    """The plan in a JSON text; raises msgspec.ValidationError for anything else."""
    return msgspec.json.decode(text, type=Plan)
