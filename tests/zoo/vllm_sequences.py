"""The shortest sequences that show the vllm flavour's mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from zoo_sequences import Abort, Ask, Evict, Join, Operation, Post, Start, words

from fuzzer.zoo.block_keys import device_tags, next_key
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.requests import Identity, Sampling

P, Q, R = words("P", 480), words("Q", 480), words("R", 480)
NAME = "tuned"

PROLOGUE = (Post("/v1/load_lora_adapter", {"lora_name": NAME, "lora_path": "first"}),)


def tuned(prompt: tuple[int, ...], path: str = "first") -> Ask:
    return Ask(prompt, model=NAME, adapters=((path, 1.0),))


UNLOAD = Post("/v1/unload_lora_adapter", {"lora_name": NAME})
LOAD_OTHER = Post("/v1/load_lora_adapter", {"lora_name": NAME, "lora_path": "second"})
REPLACE = Post("/v1/load_lora_adapter", {"lora_name": NAME, "lora_path": "second", "load_inplace": True})
RELOAD = Post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": "other"}})


def _same_key_as(block: tuple[int, ...]) -> tuple[int, ...]:
    """Another block whose truncated hash is the same."""
    tags = device_tags(Identity(), Bug.BLOCK_HASH_TRUNCATED)
    wanted = next_key(b"", block, tags, Bug.BLOCK_HASH_TRUNCATED)
    candidates = (words(f"collision {number}", 16) for number in count())
    return next(block for block in candidates if next_key(b"", block, tags, Bug.BLOCK_HASH_TRUNCATED) == wanted)


VLLM_SEQUENCES: dict[Bug, Sequence[Operation]] = {
    Bug.BLOCK_HASH_WITHOUT_ADAPTER: (Ask(P[:40]), tuned(P[:40])),
    Bug.BLOCK_HASH_WITHOUT_SALT: (Ask(P[:40], salt="x"), Ask(P[:40], salt="y", lawful=0)),
    Bug.BLOCK_HASH_WITHOUT_LAST_TOKEN: (Ask(P[:40]), Ask(P[:15] + Q[:5])),
    Bug.BLOCK_HASH_WITHOUT_PARENT: (Ask(P[:17]), Ask(Q[:33]), Ask(P[:16] + Q[16:33])),
    Bug.ADAPTER_VERSION_NOT_HASHED: (tuned(P[:40]), REPLACE, tuned(P[:40], "second")),
    Bug.ADAPTER_VERSION_RESTARTS: (tuned(P[:40]), UNLOAD, LOAD_OTHER, tuned(P[:40], "second")),
    Bug.ADAPTER_WEIGHTS_KEPT_BY_NAME: (UNLOAD, LOAD_OTHER, tuned(P[:40], "second")),
    Bug.WEIGHTS_RELOAD_KEEPS_BLOCKS: (Ask(P[:40]), RELOAD, Ask(P[:40], weights="other")),
    Bug.HOST_IGNORES_WEIGHTS_VERSION: (Ask(P[:40]), Evict(), RELOAD, Ask(P[:40], weights="other")),
    Bug.SALT_SHARES_ADAPTER_DOMAIN: (tuned(P[:40]), Ask(P[:40], salt=NAME)),
    Bug.BLOCK_HASH_TRUNCATED: (Ask(P[:20]), Ask(_same_key_as(P[:16]) + Q[:4])),
    Bug.SALT_TRUNCATED: (Ask(P[:40], salt="tenant-1"), Ask(P[:40], salt="tenant-2", lawful=0)),
    Bug.BOUNDARY_STATE_OF_CHUNK_END: (Ask(P[:40]), Ask(P[:16] + Q[:10])),
    Bug.BOUNDARY_STATE_OF_NEIGHBOUR: (Start(Ask(P, 20)), Ask(Q[:40]), Ask(Q[:33])),
    Bug.NULL_STATE_BLOCK_HIT: (Ask(P[:40]), Ask(P[:16] + Q[:10])),
    Bug.ONLY_FIRST_ROW_ZEROED: (Start(Ask(P[:20], 400)), Ask(Q[:20]), Ask(R[:20])),
    Bug.ONE_TOKEN_PROMPT_AS_DECODE: (Ask(P[:20]), Ask(Q[:1])),
    Bug.EVICTED_BLOCK_KEEPS_HASH: (Ask(P[:40]), Evict(), Ask(P[:40])),
    Bug.SHARED_BLOCK_FREED_EARLY: (Start(Ask(P[:40], 400)), Ask(P[:40]), Evict(), Join(0)),
    Bug.CHUNK_POSITIONS_WITHOUT_HIT: (Ask(P[:40]), Ask(P[:45])),
    Bug.SLEEP_KEEPS_HASHES: (Ask(P[:40]), Post("/sleep"), Post("/wake_up"), Ask(P[:40])),
    Bug.ABORT_PUBLISHES_BLOCKS: (Start(Ask(P)), Abort(0), Ask(P)),
    Bug.BLOCKS_HASHED_WHEN_SCHEDULED: (Start(Ask(P)), Ask(P)),
    Bug.HOST_IGNORES_SALT: (Ask(P[:40], salt="x"), Evict(), Ask(P[:40], salt="y", lawful=0)),
    Bug.HOST_IGNORES_ADAPTER: (tuned(P[:40]), Evict(), Ask(P[:40])),
    Bug.HOST_WITHOUT_STATE: (Ask(P[:40]), Evict(), Ask(P[:40])),
    Bug.MASK_LEFT_IN_ROW: (Ask(P[:20], sampling=Sampling(allowed=(5, 6, 7))), Ask(Q[:20])),
    Bug.BIAS_NOT_MOVED_WITH_ROW: (
        Start(Ask(P[:20], 50)),
        Start(Ask(Q[:20], 200, sampling=Sampling(bias=((5, 100.0),)))),
        Join(1),
    ),
    Bug.LOGPROB_BUFFER_NOT_REWRITTEN: (Ask(P[:40] + Q[:5]), Ask(P[:40] + R[:5])),
}
