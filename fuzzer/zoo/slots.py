"""The llama flavour's cache: slots chosen by similarity, prefixes matched by token, checkpoints, a RAM tier, files."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.leases import Lease
from fuzzer.zoo.prompt_store import Holding, RamTier, common_prefix
from fuzzer.zoo.requests import Environment, Request
from fuzzer.zoo.settings import Settings
from fuzzer.zoo.slot_memory import SlotMemory

# A slot that shares less than this part of the prompt is no better than the one that was idle for longest.
SIMILARITY = 0.1
# A slot that would lose more than this part of what it holds is kept in the RAM tier first.
KEPT_SHARE = 0.5


@dataclass(slots=True)
class Slot:
    number: int
    holding: Holding
    lease: Lease | None = None
    last_used: int = 0


class SlotCache:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._bug = settings.bug
        self._clock = 0
        self._ram = RamTier(settings.ram_entries if settings.caching else 0, settings.bug)
        self._files: dict[str, Holding] = {}
        self.slots = [Slot(number, self._empty()) for number in range(settings.rows)]

    def admit(self, request: Request) -> Lease | None:
        slot = self._choose(request)
        if slot is None:
            return None
        self._exchange_with_ram(slot, request)
        reused = self._resume(slot.holding, request)
        self._clock += 1
        slot.last_used = self._clock
        slot.lease = Lease(request, slot.holding.memory, slot.number, reused, slot.holding.hidden)
        return slot.lease

    def chunk_end(self, lease: Lease, start: int, end: int) -> int:
        """Stops one token before the end of the prompt, so that the same prompt can come again."""
        last = len(lease.request.tokens) - 1
        stops = self._keeps_checkpoints and start < last
        return min(end, last) if stops else end

    def commit(self, lease: Lease, tokens: list[int]) -> None:
        holding = self.slots[lease.row].holding
        holding.record(tokens)
        holding.hidden = lease.hidden
        if self._keeps_checkpoints and holding.memory.length < len(lease.request.tokens):
            holding.checkpoints.append(holding.memory.checkpoint())
            del holding.checkpoints[: -self._settings.checkpoints]

    def release(self, lease: Lease, sampled: int | None, *, aborted: bool) -> list[tuple[Lease, int]]:
        slot = self.slots[lease.row]
        if aborted and self._bug is Bug.ABORT_PUBLISHES_PROMPT:
            slot.holding.tokens = list(lease.request.tokens)
        if sampled is not None and self._bug is Bug.SAMPLED_TOKEN_PUBLISHED:
            slot.holding.tokens.append(sampled)
        slot.lease = None
        return []

    def save(self, number: int, name: str) -> int:
        holding = self.slots[number].holding
        self._files[name] = holding.copy()
        return len(holding.tokens)

    def restore(self, number: int, name: str) -> int | None:
        """The tokens restored, or None when there is no such file."""
        saved = self._files.get(name)
        if saved is None:
            return None
        slot = self.slots[number]
        position = slot.holding.memory.position
        slot.holding = saved.copy()
        if self._bug is Bug.RESTORED_AT_SLOT_POSITION:
            slot.holding.memory.position = position
        if self._bug is Bug.FILE_IGNORES_ENVIRONMENT:
            slot.holding.environment = None
        return len(saved.tokens)

    def erase(self, number: int) -> int:
        holding = self.slots[number].holding
        erased = len(holding.tokens)
        if self._bug is Bug.ERASE_KEEPS_RECORD:
            holding.memory.clear()
        else:
            holding.clear()
        return erased

    @property
    def _keeps_checkpoints(self) -> bool:
        return not self._settings.shape.rewinds_freely and self._settings.caching and self._settings.checkpoints > 0

    def _empty(self) -> Holding:
        return Holding(SlotMemory(self._settings.shape, self._bug), self._bug)

    def _choose(self, request: Request) -> Slot | None:
        idle = [slot for slot in self.slots if slot.lease is None]
        if request.slot is not None:
            idle = [slot for slot in idle if slot.number == request.slot]
        if not idle:
            return None
        shared = {slot.number: common_prefix(slot.holding.tokens, request.tokens) for slot in idle}
        alike = max(idle, key=lambda slot: shared[slot.number])
        if shared[alike.number] > SIMILARITY * len(request.tokens):
            return alike
        return min(idle, key=lambda slot: slot.last_used)

    def _exchange_with_ram(self, slot: Slot, request: Request) -> None:
        """Keep what the slot would lose, and look for something better; by tokens, as the slot was chosen."""
        alike = common_prefix(slot.holding.tokens, request.tokens)
        if slot.holding.tokens and alike >= KEPT_SHARE * len(slot.holding.tokens):
            return
        self._ram.keep(slot.holding)
        if not request.reads_cache:
            return
        entry = self._ram.take(request, self._shared(slot.holding, request), slot.holding)
        if entry is not None:
            self._load(slot, entry, request)

    def _load(self, slot: Slot, entry: Holding, request: Request) -> None:
        previous = slot.holding
        slot.holding = entry
        if self._bug is Bug.GUARD_COMPARES_SLOT_HISTORY:
            entry.environment = previous.environment
        if self._bug is Bug.RAM_IGNORES_ENVIRONMENT:
            entry.environment = request.environment
        if self._bug is Bug.RAM_ENTRY_AT_VICTIM_POSITION:
            entry.memory.position = previous.memory.position
        if self._bug is Bug.RAM_ENTRY_ALIASED:
            slot.holding = Holding(entry.memory, self._bug, list(entry.tokens), entry.environment)

    def _resume(self, holding: Holding, request: Request) -> int:
        """Bring the holding to the longest prefix it lawfully shares with the prompt; one token stays to compute."""
        shared = alike = self._shared(holding, request)
        if self._bug is not Bug.LOGITS_OF_LONGER_PROMPT:
            shared = min(shared, len(request.tokens) - 1)
        if not holding.memory.resumable(shared):
            shared = self._rewind(holding, shared)
        if shared == 0:
            holding.clear(states=alike == 0 or self._bug is not Bug.CLEARED_SLOT_KEEPS_STATE)
        else:
            holding.cut(shared)
        holding.environment = request.environment
        return shared

    def _rewind(self, holding: Holding, shared: int) -> int:
        """Restore the newest checkpoint that lies inside the shared prefix; its position, or 0 without one."""
        past = self._bug is Bug.CHECKPOINT_PAST_PREFIX and shared > 0
        usable = [kept for kept in holding.checkpoints if kept.position <= shared or past]
        if not usable:
            return 0
        newest = max(usable, key=lambda kept: kept.position)
        holding.memory.restore(newest)
        return min(newest.position, shared)

    def _shared(self, holding: Holding, request: Request) -> int:
        if not self._settings.caching or not request.reads_cache or not self._guard(holding, request):
            return 0
        return common_prefix(holding.tokens, request.tokens)

    def _guard(self, holding: Holding, request: Request) -> bool:
        """Whether the holding was computed in the request's environment."""
        if self._bug is Bug.GLOBAL_SCALE_UNGUARDED and not request.names_adapters:
            return True
        if self._bug is Bug.PINNED_SLOT_UNGUARDED and request.slot is not None:
            return True
        if self._bug is Bug.GUARD_COMPARES_FIRST_SLOT:
            holding = self.slots[0].holding
        if holding.environment is None:
            return self._bug is Bug.FILE_IGNORES_ENVIRONMENT
        return self._key(holding.environment) == self._key(request.environment)

    def _key(self, environment: Environment) -> Hashable:
        match self._bug:
            case Bug.SLOT_IGNORES_SCALES:
                return tuple(path for path, _ in environment.adapters)
            case Bug.SLOT_IGNORES_ADAPTER_ID:
                return tuple(scale for _, scale in environment.adapters)
            case Bug.SCALE_TRUNCATED:
                return tuple((path, int(scale)) for path, scale in environment.adapters)
            case _:
                return environment
