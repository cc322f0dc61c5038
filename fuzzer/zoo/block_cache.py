"""The vllm flavour's cache: hashed blocks, found again one by one on the device and in the host tier."""

from __future__ import annotations

from dataclasses import dataclass, field

from fuzzer.zoo.block_keys import BlockKey, Tags, device_tags, host_tags, next_key
from fuzzer.zoo.block_memory import BlockContent, BlockMemory, PagedMemory
from fuzzer.zoo.block_pool import BlockPool, HostTier
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.leases import Lease
from fuzzer.zoo.requests import Request
from fuzzer.zoo.settings import Settings


@dataclass(slots=True)
class KeyChain:
    """The keys of a growing token list, on the device and on the host."""

    device: Tags
    host: Tags
    bug: Bug | None
    size: int
    keys: list[tuple[BlockKey, BlockKey]] = field(default_factory=list)

    def extend(self, tokens: list[int], blocks: int) -> None:
        while len(self.keys) < blocks:
            start = len(self.keys) * self.size
            part = tokens[start : start + self.size]
            parent, host_parent = self.keys[-1] if self.keys else (b"", b"")
            host_key = next_key(host_parent, part, self.host, None)
            self.keys.append((next_key(parent, part, self.device, self.bug), host_key))


@dataclass(slots=True)
class Running:
    """One running request: its blocks, the tokens computed into them, and how many of the blocks have a name."""

    lease: Lease
    memory: PagedMemory
    table: list[int]
    tokens: list[int]
    chain: KeyChain
    published: int


class BlockCache:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._bug = settings.bug
        self._size = settings.block_size
        self._memory = BlockMemory(settings.shape, settings.blocks, settings.block_size, settings.rows)
        self._host = HostTier(settings.host_blocks if settings.caching else 0, settings.bug)
        self._pool = BlockPool(self._memory, settings.blocks, self._host, settings.bug)
        self._running: list[Running] = []  # the request in row i is the i-th

    def admit(self, request: Request) -> Lease | None:
        if len(self._running) == self._settings.rows:
            return None
        chain = self._chain(request)
        hits = self._lookup(request, chain)
        table = self._allocate(request, hits)
        if table is None:
            return None
        reused = len(hits) * self._size
        return self._start(request, chain, table, reused)

    def chunk_end(self, lease: Lease, start: int, end: int) -> int:
        """A running state can be kept only where a chunk ends on a block's boundary."""
        boundary = end // self._size * self._size
        aligned = self._memory.recurrent and boundary > start and self._bug is not Bug.BOUNDARY_STATE_OF_CHUNK_END
        return boundary if aligned else end

    def commit(self, lease: Lease, tokens: list[int]) -> None:
        running = self._running[lease.row]
        running.tokens.extend(tokens)
        self._publish(running, len(running.tokens) // self._size)

    def release(self, lease: Lease, sampled: int | None, *, aborted: bool) -> list[tuple[Lease, int]]:
        running = self._running[lease.row]
        if aborted and self._bug is Bug.ABORT_PUBLISHES_BLOCKS:
            running.tokens = list(lease.request.tokens)
            self._publish(running, len(running.tokens) // self._size)
        self._pool.give_back(running.table)
        return self._close_row(lease.row)

    def flush(self) -> bool:
        """Forget every block in both tiers, unless requests are running."""
        if self._running:
            return False
        self._pool.forget()
        self._host.clear()
        return True

    def sleep(self) -> None:
        """Give the device memory back; the host tier stays."""
        self._memory.discard()
        if self._bug is not Bug.SLEEP_KEEPS_HASHES:
            self._pool.forget()

    def _chain(self, request: Request) -> KeyChain:
        tags = device_tags(request.identity, self._bug)
        return KeyChain(tags, host_tags(request.identity, self._bug), self._bug, self._size)

    def _lookup(self, request: Request, chain: KeyChain) -> list[int | BlockContent]:
        """The longest run of known blocks; at least one token of the prompt stays to compute."""
        if not self._settings.caching or not request.reads_cache:
            return []
        chain.extend(list(request.tokens), (len(request.tokens) - 1) // self._size)
        hits: list[int | BlockContent] = []
        for key, host_key in chain.keys:
            hit = self._find(key, host_key)
            if hit is None:
                break
            hits.append(hit)
        while hits and not self._resumable(hits[-1]):
            hits.pop()
        return hits

    def _find(self, key: BlockKey, host_key: BlockKey) -> int | BlockContent | None:
        block = self._pool.find(key)
        return block if block is not None else self._host.get(host_key)

    def _resumable(self, hit: int | BlockContent) -> bool:
        """Whether the running states at the block's end are known, where the model has any."""
        if not self._memory.recurrent or self._bug is Bug.NULL_STATE_BLOCK_HIT:
            return True
        if isinstance(hit, BlockContent):
            return hit.states is not None or self._bug is Bug.HOST_WITHOUT_STATE
        return hit in self._memory.boundary_states

    def _allocate(self, request: Request, hits: list[int | BlockContent]) -> list[int] | None:
        """Blocks for the prompt and the whole answer, so that a running request never waits for one."""
        needed = -(-(len(request.tokens) + request.max_tokens) // self._size)
        shared = [hit for hit in hits if isinstance(hit, int)]
        for block in shared:
            self._pool.share(block)
        if self._pool.free < needed - len(shared):
            self._pool.give_back(shared)
            return None
        table = [hit if isinstance(hit, int) else self._bring_back(hit) for hit in hits]
        return table + [self._pool.take() for _ in range(needed - len(table))]

    def _bring_back(self, content: BlockContent) -> int:
        block = self._pool.take()
        self._memory.fill(block, content)
        return block

    def _start(self, request: Request, chain: KeyChain, table: list[int], reused: int) -> Lease:
        row = len(self._running)
        self._prepare_states(row, request, table[reused // self._size - 1] if reused else None)
        memory = PagedMemory(self._memory, table, row, reused)
        if self._bug is Bug.CHUNK_POSITIONS_WITHOUT_HIT:
            memory.position = 0
        lease = Lease(request, memory, row, reused)
        running = Running(lease, memory, table, list(request.tokens[:reused]), chain, 0)
        self._running.append(running)
        self._publish(running, reused // self._size)
        if self._bug is Bug.BLOCKS_HASHED_WHEN_SCHEDULED:
            chain.extend(list(request.tokens), len(request.tokens) // self._size)
            self._publish(running, len(request.tokens) // self._size)
        return lease

    def _prepare_states(self, row: int, request: Request, last_hit: int | None) -> None:
        if last_hit is not None and last_hit in self._memory.boundary_states:
            self._memory.states[row] = self._memory.boundary_states[last_hit]
        elif self._bug is Bug.ONE_TOKEN_PROMPT_AS_DECODE and len(request.tokens) == 1:
            return
        elif row == 0 or self._bug is not Bug.ONLY_FIRST_ROW_ZEROED:
            self._memory.states[row] = 0

    def _publish(self, running: Running, blocks: int) -> None:
        if not self._settings.caching:
            return
        running.chain.extend(running.tokens, blocks)
        for index in range(running.published, blocks):
            block = running.table[index]
            self._keep_boundary_state(running, index)
            self._pool.publish(block, *running.chain.keys[index])
        running.published = max(running.published, blocks)

    def _keep_boundary_state(self, running: Running, index: int) -> None:
        at_boundary = (index + 1) * self._size == running.memory.length
        if not self._memory.recurrent or running.table[index] in self._memory.boundary_states:
            return
        if at_boundary or self._bug is Bug.BOUNDARY_STATE_OF_CHUNK_END:
            row = 0 if self._bug is Bug.BOUNDARY_STATE_OF_NEIGHBOUR else running.memory.row
            self._memory.keep_state(running.table[index], row)

    def _close_row(self, row: int) -> list[tuple[Lease, int]]:
        """The last row moves into the hole, states and all."""
        last = self._running.pop()
        source = len(self._running)
        if source == row:
            return []
        self._running[row] = last
        self._memory.states[row] = self._memory.states[source]
        last.memory.row = last.lease.row = row
        return [(last.lease, source)]
