"""Uniformly random plans: every operation that the server can do, every path, all equally likely, all the time.

No swarm, no steering, no scenario, and no prompt drawn in view of another; prompts share prefixes where chance has it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

from scenarios.capabilities import Capabilities
from scenarios.operations import (
    Abort,
    Await,
    Complete,
    Erase,
    Evict,
    Flush,
    Join,
    Operation,
    Other,
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
from scenarios.prompts import Prompt, Segment
from scenarios.swarm import Spelling, explicit_spellings

Asking = TypeVar("Asking", Complete, Start)
_MOST = 40
"""Operations of a plan: many more than the fuzzer draws, since two that have to do with each other are rare here."""
_ROOTS = 3
_SEGMENTS = 3
_STREAMS = "abcd"
_LONGEST = 64
"""Of a segment; lengths next to the block, the window and the chunk of the zoo are all below."""
_SALTS = ("", "tenant-1", "a")


def uniform_plans(capabilities: Capabilities, rng: random.Random) -> Iterator[Plan]:
    """Plans without end."""
    while True:
        drawing = _Drawing(capabilities, rng)
        for _ in range(rng.randint(2, _MOST)):
            drawing.add()
        yield drawing.plan()


class _Drawing:
    def __init__(self, capabilities: Capabilities, rng: random.Random) -> None:
        self._can = capabilities
        self._rng = rng
        self._explicit = explicit_spellings(capabilities)
        self._operations: list[Operation] = []
        self._flying: list[int] = []
        self._saved: list[int] = []
        self._asked: dict[int, int] = {}
        """Tokens of prompt and answer by step."""

    def add(self) -> None:
        """One more operation."""
        useless = set() if self._flying else {"await", "join", "abort"}
        useless |= set() if self._saved else {"restore"}
        kinds = [kind for kind in self._can.operations if kind not in useless]
        operation = self._operation(self._rng.choice(kinds))
        at = len(self._operations)
        if isinstance(operation, Start):
            self._flying.append(at)
        if isinstance(operation, (Join, Abort)):
            self._flying.remove(operation.of)
        if isinstance(operation, Save):
            self._saved.append(operation.file)
        if isinstance(operation, (Complete, Start)):
            self._asked[at] = (
                self._asked.get(operation.prompt.after or -1, 0) + operation.prompt.length + operation.tokens
            )
        self._operations.append(operation)

    def plan(self) -> Plan:
        """The plan; the global scales are set first where the server has any."""
        prologue = (SetScales(self._rng.choice(self._explicit)),) if "set_scales" in self._can.operations else ()
        return Plan(tuple(self._operations), prologue)

    def _operation(self, kind: str) -> Operation:
        pick, slot = self._rng.choice, self._rng.randrange(max(1, self._can.slots))
        match kind:
            case "complete":
                return self._request(Complete, 8)
            case "start":
                return self._request(Start, 48)
            case "await":
                return Await(pick(self._flying), self._rng.randint(1, 8))
            case "join":
                return Join(pick(self._flying))
            case "abort":
                return Abort(pick(self._flying))
            case "set_scales":
                return SetScales(pick(self._explicit))
            case "evict":
                return Evict(self._rng.randint(1, 3), self._rng.randint(1, _LONGEST), pick(self._explicit))
            case "save":
                return Save(slot, self._rng.randrange(2))
            case "restore":
                return Restore(slot, pick(self._saved))
            case "erase":
                return Erase(slot)
        return self._loading(kind)

    def _loading(self, kind: str) -> Operation:
        version, adapter = self._rng.randrange(2), self._rng.randrange(max(1, self._can.adapters))
        match kind:
            case "reload":
                return Reload(adapter, version)
            case "unload":
                return Unload(adapter)
            case "reload_weights":
                return ReloadWeights(version)
            case "sleep":
                return Sleep()
            case "restart":
                return Restart()
            case "flush":
                return Flush()
            case "other":
                return Other(self._rng.choice(self._can.tasks))
        raise ValueError(f"no operation of kind {kind!r}")

    def _request(self, kind: type[Asking], most: int) -> Asking:
        slots = (None, *range(self._can.slots)) if self._can.pins else (None,)
        return kind(
            prompt=self._prompt(),
            scales=self._rng.choice(self._spellings()),
            tokens=self._rng.randint(1, most),
            slot=self._rng.choice(slots),
            sampling=self._rng.choice(self._can.samplings),
            salt=self._rng.choice(_SALTS) if self._can.salts else "",
        )

    def _spellings(self) -> Sequence[Spelling]:
        relies = "set_scales" in self._can.operations
        return [*self._explicit, *([None, ()] if relies else [])]

    def _prompt(self) -> Prompt:
        """A path from any root, or from any earlier answer that leaves room."""
        segments = tuple(
            Segment(self._rng.choice(_STREAMS), self._rng.randint(1, _LONGEST))
            for _ in range(self._rng.randint(1, _SEGMENTS))
        )
        room = self._can.context // 2
        start = self._rng.choice([None, *(at for at, length in self._asked.items() if length < room)])
        if start is None:
            return Prompt(self._rng.randrange(_ROOTS), segments)
        earlier = self._operations[start]
        assert isinstance(earlier, (Complete, Start))
        return Prompt(earlier.prompt.root, segments, start, self._rng.randint(0, earlier.tokens))
