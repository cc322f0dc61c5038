"""What a slot, an entry of the RAM tier or a saved file holds, and the RAM tier of prompts that lost their slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fuzzer.zoo.arithmetic import Floats
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.requests import Environment, Request
from fuzzer.zoo.slot_memory import Checkpoint, SlotMemory

# A longer entry of which less would be kept stays in the tier: restoring it would trash it.
KEPT_SHARE_OF_ENTRY = 0.25


@dataclass(slots=True)
class Holding:
    """Tokens, the environment they were computed in, and what the computation left; empty without an environment."""

    memory: SlotMemory
    bug: Bug | None
    tokens: list[int] = field(default_factory=list)
    environment: Environment | None = None
    checkpoints: list[Checkpoint] = field(default_factory=list)
    hidden: Floats | None = None

    def copy(self) -> Holding:
        return Holding(
            self.memory.copy(), self.bug, list(self.tokens), self.environment, list(self.checkpoints), self.hidden
        )

    def clear(self, *, states: bool = True) -> None:
        self.memory.clear(states=states)
        self.tokens.clear()
        self.environment = None
        if self.bug is not Bug.CHECKPOINTS_SURVIVE_CLEAR:
            self.checkpoints.clear()

    def cut(self, count: int) -> None:
        """Keep the first ``count`` tokens."""
        self.memory.truncate(count)
        if self.bug is not Bug.RECORD_NOT_CUT:
            del self.tokens[count:]
        if self.bug is not Bug.CHECKPOINTS_KEPT_PAST_REWIND:
            self.checkpoints = [kept for kept in self.checkpoints if kept.position <= count]

    def record(self, tokens: list[int]) -> None:
        """Note tokens that were just computed."""
        missing = self.memory.length - len(self.tokens)
        if missing > 0:
            self.tokens.extend(tokens[-missing:])


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
    return min(len(first), len(second))


class RamTier:
    """Prompts evicted from their slots, oldest first."""

    def __init__(self, capacity: int, bug: Bug | None) -> None:
        self._capacity = capacity
        self._bug = bug
        self._entries: list[Holding] = []

    def keep(self, holding: Holding) -> None:
        if not holding.tokens or self._capacity == 0:
            return
        self._entries = [entry for entry in self._entries if not _covers(holding, entry)]
        self._entries.append(holding.copy())
        del self._entries[: -self._capacity]

    def take(self, request: Request, held: int, holding: Holding) -> Holding | None:
        """The entry that serves better than the slot, which holds ``held`` tokens of the prompt; it leaves the tier."""
        best, best_shared = None, held
        for entry in self._entries:
            shared = self._shared(entry, request)
            kept_share = shared / len(entry.tokens)
            if shared > best_shared and kept_share >= max(KEPT_SHARE_OF_ENTRY, _share(held, len(holding.tokens))):
                best, best_shared = entry, shared
        if best is not None and self._bug is not Bug.RAM_ENTRY_ALIASED:
            self._entries.remove(best)
        return best

    def _shared(self, entry: Holding, request: Request) -> int:
        unguarded = self._bug in (Bug.RAM_IGNORES_ENVIRONMENT, Bug.GUARD_COMPARES_SLOT_HISTORY)
        if entry.environment != request.environment and not unguarded:
            return 0
        return common_prefix(entry.tokens, request.tokens)


def _covers(holding: Holding, entry: Holding) -> bool:
    same = holding.environment == entry.environment
    return same and holding.tokens[: len(entry.tokens)] == entry.tokens


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
