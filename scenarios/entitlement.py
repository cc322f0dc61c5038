"""Entitlement: in which environment each request of a plan must be answered.

The rules are those that servers document: an adapter list in a request says everything (what it leaves out is off),
a request without the field follows the global scales at the time it is sent, and what is loaded under a name counts
from the moment it was loaded. A request that was running while its environment changed may lawfully mix the two, and
whoever restores what a slot held under other weights gets what was asked for.
"""

from __future__ import annotations

import msgspec

from scenarios.environment import AdapterScale, Environment, environment
from scenarios.operations import (
    Abort,
    Complete,
    Evict,
    Join,
    Operation,
    Reload,
    ReloadWeights,
    Restart,
    Restore,
    Save,
    SetScales,
    Sleep,
    Start,
    Unload,
)
from scenarios.plans import Plan


class World(msgspec.Struct):
    """What a server has been told so far."""

    scales: tuple[AdapterScale, ...] | None = None
    """Global ones; unknown until a plan has set them."""
    versions: dict[int, int] = {}
    weights: int = 0

    def tell(self, operation: Operation) -> None:
        """Take note of an operation that changes later environments."""
        match operation:
            case SetScales(scales=scales):
                self.scales = scales
            case Reload(adapter=adapter, version=version) | Unload(adapter=adapter, version=version):
                self.versions[adapter] = version
            case ReloadWeights(version=version):
                self.weights = version
            case Restart():
                self.scales, self.versions, self.weights = None, {}, 0
            case _:
                pass

    @property
    def loaded(self) -> tuple[tuple[tuple[int, int], ...], int]:
        """The versions of adapters, where they are not the first, and of the model's weights."""
        return tuple(sorted((adapter, one) for adapter, one in self.versions.items() if one)), self.weights

    def has(self, environment: Environment) -> bool:
        """Whether the versions that an environment names are the ones that are loaded."""
        same = all(self.versions.get(scale.adapter, 0) == scale.version for scale in environment.scales)
        return same and self.weights == environment.weights

    def of(self, request: Complete | Start) -> Environment | None:
        """The environment of a request sent now; None where it hangs on what nobody has set."""
        scales = self.scales if request.scales is None else request.scales
        if scales is None:
            return None
        versioned = [AdapterScale(scale.adapter, scale.scale, self.versions.get(scale.adapter, 0)) for scale in scales]
        return environment(versioned, salt=request.salt, weights=self.weights)


class _SlotFiles:
    """What saved slots were computed with; ``foreign``: a slot may hold what other versions computed, as restored."""

    def __init__(self) -> None:
        self._computed_with: dict[int, object] = {}
        self.foreign = False

    def tell(self, operation: Operation, world: World) -> None:
        """Take note of an operation, and of the ``world`` after it."""
        match operation:
            case Save(file=file):
                self._computed_with[file] = None if self.foreign else world.loaded
            case Restore(file=file) if file in self._computed_with:
                self.foreign = self.foreign or self._computed_with[file] != world.loaded
            case Sleep() | Restart():
                self.foreign = False
            case _:
                pass


def changed_versions(plan: Plan) -> list[Operation]:
    """What brings back the first versions of all that the plan loaded others of, in the way it last loaded each.

    What counts versions may count those that are replaced in place and those that are unloaded first in two ways, and
    the next plan had better find the count as this one did.
    """
    world = World()
    last: dict[int, Operation] = {}
    for operation in (*plan.prologue, *plan.operations):
        world.tell(operation)
        if isinstance(operation, (Reload, Unload)):
            last[operation.adapter] = type(operation)(operation.adapter, 0)
    loads = [load for adapter, load in last.items() if world.versions.get(adapter)]
    return [*loads, ReloadWeights(0)] if world.weights else loads


TELLING = (SetScales, Reload, Unload, ReloadWeights)
"""Operations that tell a server in which environment to answer from then on."""
_CHANGES = (*TELLING, Sleep, Restart)
"""Operations during which a running request may come to mix two environments."""


def entitlements(plan: Plan) -> list[Environment | None]:
    """For each operation of a plan the environment of its answer; None where there is none, or none is known."""
    world = World()
    for operation in plan.prologue:
        world.tell(operation)
    found: list[Environment | None] = []
    running: set[int] = set()
    files = _SlotFiles()
    for at, operation in enumerate(plan.operations):
        world.tell(operation)
        files.tell(operation, world)
        if isinstance(operation, _CHANGES):
            for spanning in running:
                found[spanning] = None
        if isinstance(operation, Start):
            running.add(at)
        if isinstance(operation, (Join, Abort)):
            running.discard(operation.of)
        if isinstance(operation, (Complete, Start)) and not files.foreign:
            found.append(world.of(operation))
        else:
            found.append(None)
    return found


def overwritten(plan: Plan) -> list[bool]:
    """For each operation of a plan whether its environment names a version that the plan replaces later."""
    last = World()
    for operation in (*plan.prologue, *plan.operations):
        last.tell(operation)
    return [found is not None and not last.has(found) for found in entitlements(plan)]


def self_contained(plan: Plan) -> bool:
    """Whether every request that leaves its scales out follows global ones that the plan itself has set."""
    known = any(isinstance(operation, SetScales) for operation in plan.prologue)
    for operation in plan.operations:
        known = (known or isinstance(operation, SetScales)) and not isinstance(operation, Restart)
        if isinstance(operation, (Complete, Start, Evict)) and operation.scales is None and not known:
            return False
    return True


def follows_global_scales(plan: Plan) -> bool:
    """Whether any request leaves its scales out, so that its answer hangs on what the server is set to."""
    return any(
        isinstance(operation, (Complete, Start, Evict)) and operation.scales is None for operation in plan.operations
    )
