"""The switches: one name for each mistake that can be planted. What each one is, is told in the tables of mutants."""

from __future__ import annotations

from enum import StrEnum


class Bug(StrEnum):
    SLOT_IGNORES_SCALES = "slot-ignores-scales"
    SLOT_IGNORES_ADAPTER_ID = "slot-ignores-adapter-id"
    BLOCK_HASH_WITHOUT_ADAPTER = "block-hash-without-adapter"
    BLOCK_HASH_WITHOUT_SALT = "block-hash-without-salt"
    BLOCK_HASH_WITHOUT_LAST_TOKEN = "block-hash-without-last-token"
    BLOCK_HASH_WITHOUT_PARENT = "block-hash-without-parent"

    ADAPTER_VERSION_NOT_HASHED = "adapter-version-not-hashed"
    ADAPTER_VERSION_RESTARTS = "adapter-version-restarts"
    ADAPTER_WEIGHTS_KEPT_BY_NAME = "adapter-weights-kept-by-name"
    WEIGHTS_RELOAD_KEEPS_BLOCKS = "weights-reload-keeps-blocks"
    HOST_IGNORES_WEIGHTS_VERSION = "host-ignores-weights-version"

    SALT_SHARES_ADAPTER_DOMAIN = "salt-shares-adapter-domain"
    BLOCK_HASH_TRUNCATED = "block-hash-truncated"
    SALT_TRUNCATED = "salt-truncated"
    SCALE_TRUNCATED = "scale-truncated"

    GUARD_COMPARES_SLOT_HISTORY = "guard-compares-slot-history"
    GUARD_COMPARES_FIRST_SLOT = "guard-compares-first-slot"
    GLOBAL_SCALE_UNGUARDED = "global-scale-unguarded"
    PINNED_SLOT_UNGUARDED = "pinned-slot-unguarded"

    CHECKPOINT_PAST_PREFIX = "checkpoint-past-prefix"
    CHECKPOINTS_KEPT_PAST_REWIND = "checkpoints-kept-past-rewind"
    WINDOW_REUSED_TOO_DEEP = "window-reused-too-deep"
    WINDOW_TRIMMED_TOO_LITTLE = "window-trimmed-too-little"

    RECURRENT_TRIM_IGNORED = "recurrent-trim-ignored"
    CHECKPOINT_ONE_TOKEN_AHEAD = "checkpoint-one-token-ahead"
    BOUNDARY_STATE_OF_CHUNK_END = "boundary-state-of-chunk-end"
    BOUNDARY_STATE_OF_NEIGHBOUR = "boundary-state-of-neighbour"
    NULL_STATE_BLOCK_HIT = "null-state-block-hit"

    ONLY_FIRST_ROW_ZEROED = "only-first-row-zeroed"
    ONE_TOKEN_PROMPT_AS_DECODE = "one-token-prompt-as-decode"
    CLEARED_SLOT_KEEPS_STATE = "cleared-slot-keeps-state"
    CHECKPOINTS_SURVIVE_CLEAR = "checkpoints-survive-clear"
    EVICTED_BLOCK_KEEPS_HASH = "evicted-block-keeps-hash"
    SHARED_BLOCK_FREED_EARLY = "shared-block-freed-early"
    ABORTED_ROW_WRITES_AGAIN = "aborted-row-writes-again"

    POSITION_NOT_REWOUND = "position-not-rewound"
    RAM_ENTRY_AT_VICTIM_POSITION = "ram-entry-at-victim-position"
    RESTORED_AT_SLOT_POSITION = "restored-at-slot-position"
    CHUNK_POSITIONS_WITHOUT_HIT = "chunk-positions-without-hit"

    RECORD_NOT_CUT = "record-not-cut"
    RAM_ENTRY_ALIASED = "ram-entry-aliased"
    ERASE_KEEPS_RECORD = "erase-keeps-record"
    SLEEP_KEEPS_HASHES = "sleep-keeps-hashes"

    ABORT_PUBLISHES_PROMPT = "abort-publishes-prompt"
    ABORT_PUBLISHES_BLOCKS = "abort-publishes-blocks"
    SAMPLED_TOKEN_PUBLISHED = "sampled-token-published"
    BLOCKS_HASHED_WHEN_SCHEDULED = "blocks-hashed-when-scheduled"

    RAM_IGNORES_ENVIRONMENT = "ram-ignores-environment"
    FILE_IGNORES_ENVIRONMENT = "file-ignores-environment"
    HOST_IGNORES_SALT = "host-ignores-salt"
    HOST_IGNORES_ADAPTER = "host-ignores-adapter"
    HOST_WITHOUT_STATE = "host-without-state"

    MASK_LEFT_IN_ROW = "mask-left-in-row"
    PENALTIES_LEFT_IN_ROW = "penalties-left-in-row"
    BIAS_NOT_MOVED_WITH_ROW = "bias-not-moved-with-row"
    LOGITS_OF_LONGER_PROMPT = "logits-of-longer-prompt"
    LOGPROB_BUFFER_NOT_REWRITTEN = "logprob-buffer-not-rewritten"
