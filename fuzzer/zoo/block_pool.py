"""Which block is free, shared or named, in which order blocks are evicted, and the tier that catches them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from fuzzer.zoo.block_keys import BlockKey
from fuzzer.zoo.block_memory import BlockContent, BlockMemory
from fuzzer.zoo.bugs import Bug


class HostTier:
    """Evicted blocks under the tier's own keys, least recently stored first out."""

    def __init__(self, capacity: int, bug: Bug | None) -> None:
        self._capacity = capacity
        self._bug = bug
        self._contents: OrderedDict[BlockKey, BlockContent] = OrderedDict()

    def store(self, key: BlockKey, content: BlockContent) -> None:
        kept = replace(content, states=None) if self._bug is Bug.HOST_WITHOUT_STATE else content
        self._contents[key] = kept
        self._contents.move_to_end(key)
        while len(self._contents) > self._capacity:
            self._contents.popitem(last=False)

    def get(self, key: BlockKey) -> BlockContent | None:
        return self._contents.get(key)

    def clear(self) -> None:
        self._contents.clear()


class BlockPool:
    def __init__(self, memory: BlockMemory, blocks: int, host: HostTier, bug: Bug | None) -> None:
        self._memory = memory
        self._host = host
        self._bug = bug
        self._users = [0] * blocks
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(blocks))
        self._named: dict[BlockKey, int] = {}
        self._names: dict[int, tuple[BlockKey, BlockKey]] = {}  # block: its device key and its host key

    @property
    def free(self) -> int:
        return len(self._free)

    def find(self, key: BlockKey) -> int | None:
        return self._named.get(key)

    def publish(self, block: int, key: BlockKey, host_key: BlockKey) -> None:
        """Let later requests find the block; of two with the same content the first keeps the name."""
        if key not in self._named and block not in self._names:
            self._named[key] = block
            self._names[block] = (key, host_key)

    def share(self, block: int) -> None:
        """One more request uses the block, which cannot be evicted meanwhile."""
        if self._bug is Bug.SHARED_BLOCK_FREED_EARLY and self._users[block]:
            return
        self._users[block] += 1
        self._free.pop(block, None)

    def take(self) -> int:
        """The free block that was unused for longest; what it held goes to the host tier."""
        block, _ = self._free.popitem(last=False)
        self._evict(block)
        self._users[block] = 1
        return block

    def give_back(self, table: list[int]) -> None:
        """The last blocks of a prompt are the first to be evicted: fewer prompts share them."""
        for block in reversed(table):
            self._users[block] -= 1
            if self._users[block] <= 0:
                self._users[block] = 0
                self._free[block] = None

    def forget(self) -> None:
        """Drop every name; running requests keep their blocks."""
        self._named.clear()
        self._names.clear()
        self._memory.boundary_states.clear()

    def _evict(self, block: int) -> None:
        if block not in self._names:
            self._memory.boundary_states.pop(block, None)
            return
        key, host_key = self._names.pop(block)
        if self._bug is not Bug.EVICTED_BLOCK_KEEPS_HASH:
            del self._named[key]
        self._host.store(host_key, self._memory.content(block))
        self._memory.boundary_states.pop(block, None)
