"""Plans: finite sequences of operations, immutable, serialisable, runnable on any server with the capabilities."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from scenarios.operations import Abort, Await, Complete, Evict, Join, Operation, Start
from scenarios.prompts import Prompt


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is done, in order, after a prologue that sets everything the operations rely on."""

    operations: tuple[Operation, ...]
    prologue: tuple[Operation, ...] = ()

    @property
    def roots(self) -> int:
        """How many roots the prompts of the plan have."""
        return 1 + max((request.prompt.root for _, request in requests(self)), default=-1)

    @property
    def fillers(self) -> int:
        """How many filler prompts the plan sends, each with a root of its own."""
        return sum(operation.requests for operation in self.operations if isinstance(operation, Evict))

    @property
    def overlaps(self) -> bool:
        """Whether requests may run side by side, so that timing can decide what happens."""
        return any(isinstance(operation, Start) for operation in self.operations)


def requests(plan: Plan) -> Iterator[tuple[int, Complete | Start]]:
    """The operations that get an answer which is judged, with their indexes."""
    for at, operation in enumerate(plan.operations):
        if isinstance(operation, (Complete, Start)):
            yield at, operation


def without(plan: Plan, steps: Collection[int]) -> Plan:
    """The plan with the operations at these indexes left out, and those that speak of them."""
    gone = set(steps)
    kept: list[Operation] = []
    moved: dict[int, int] = {}
    for at, operation in enumerate(plan.operations):
        if at in gone or any(reference in gone for reference in references(operation)):
            gone.add(at)
            continue
        moved[at] = len(kept)
        kept.append(pointed(operation, moved))
    return msgspec.structs.replace(plan, operations=tuple(kept))


def replaced(plan: Plan, step: int, operation: Operation) -> Plan:
    """The plan with another operation at index ``step``."""
    operations = (*plan.operations[:step], operation, *plan.operations[step + 1 :])
    return msgspec.structs.replace(plan, operations=operations)


def changed(plan: Plan, change: Callable[[Complete | Start], Operation]) -> Plan:
    """The plan with every request replaced by what ``change`` makes of it."""
    operations = tuple(
        change(operation) if isinstance(operation, (Complete, Start)) else operation for operation in plan.operations
    )
    return msgspec.structs.replace(plan, operations=operations)


def references(operation: Operation) -> tuple[int, ...]:
    """Indexes of the earlier operations that this one speaks of."""
    if isinstance(operation, (Await, Join, Abort)):
        return (operation.of,)
    if isinstance(operation, (Complete, Start)) and operation.prompt.after is not None:
        return (operation.prompt.after,)
    return ()


def pointed(operation: Operation, moved: dict[int, int]) -> Operation:
    """The operation with the indexes that it speaks of replaced."""
    if isinstance(operation, (Await, Join, Abort)):
        return msgspec.structs.replace(operation, of=moved[operation.of])
    if isinstance(operation, (Complete, Start)) and operation.prompt.after is not None:
        after = moved[operation.prompt.after]
        return with_prompt(operation, msgspec.structs.replace(operation.prompt, after=after))
    return operation


def completed(request: Complete | Start) -> Complete:
    """The same request sent and awaited."""
    return Complete(**{field: getattr(request, field) for field in request.__struct_fields__})


def ended_by(operations: Sequence[Operation], step: int) -> int | None:
    """The step that joins or aborts the request started at ``step``; None where none does."""
    ends = (at for at, one in enumerate(operations) if isinstance(one, (Join, Abort)) and one.of == step)
    return next(ends, None)


def with_prompt(request: Complete | Start, prompt: Prompt) -> Complete | Start:
    """The request with another prompt."""
    return msgspec.structs.replace(request, prompt=prompt)


def joined(plans: Collection[Plan]) -> Plan:
    """One plan that does what these do one after another, prologues included; roots stay distinct between them."""
    operations: list[Operation] = []
    offset = 0
    for plan in plans:
        operations += plan.prologue
        start = len(operations)
        moved = {at: start + at for at in range(len(plan.operations))}
        shifted = changed(plan, lambda request, by=offset: _shifted(request, by))  # type: ignore[misc]
        operations += [pointed(operation, moved) for operation in shifted.operations]
        offset += plan.roots
    return Plan(tuple(operations))


def compact(plan: Plan) -> Plan:
    """The same plan with its roots numbered in order of first use."""
    order: dict[int, int] = {}
    for _, request in requests(plan):
        order.setdefault(request.prompt.root, len(order))
    return changed(plan, lambda request: _with_root(request, order[request.prompt.root]))


def _shifted(request: Complete | Start, by: int) -> Complete | Start:
    return _with_root(request, request.prompt.root + by)


def _with_root(request: Complete | Start, root: int) -> Complete | Start:
    return with_prompt(request, msgspec.structs.replace(request.prompt, root=root))


def encode(plan: Plan) -> bytes:
    """JSON of a plan."""
    return msgspec.json.encode(plan)


def decode(text: bytes | str) -> Plan:
    """The plan in a JSON text; raises msgspec.ValidationError for anything else."""
    return msgspec.json.decode(text, type=Plan)
