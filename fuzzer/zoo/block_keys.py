"""The names of blocks: a chain of hashes over the tokens and everything else that decided the block's content."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence

from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.requests import Identity

BlockKey = bytes
Tags = tuple[object, ...]


def device_tags(identity: Identity, bug: Bug | None) -> Tags:
    """What the blocks on the device depend on besides their tokens; each field under its own name."""
    version = 0 if bug is Bug.ADAPTER_VERSION_NOT_HASHED else identity.version
    adapter: Tags = ("adapter", identity.adapter, version)
    salt: Tags = ("salt", identity.salt)
    match bug:
        case Bug.BLOCK_HASH_WITHOUT_ADAPTER:
            adapter = ()
        case Bug.BLOCK_HASH_WITHOUT_SALT:
            salt = ()
        case Bug.SALT_TRUNCATED:
            salt = ("salt", identity.salt[:4])
        case Bug.SALT_SHARES_ADAPTER_DOMAIN:
            adapter, salt = (*filter(None, (identity.adapter, identity.salt)), version), ()
    weights = 0 if bug is Bug.WEIGHTS_RELOAD_KEEPS_BLOCKS else identity.weights_version
    return (*adapter, *salt, "weights", weights)


def host_tags(identity: Identity, bug: Bug | None) -> Tags:
    """The same for the tier below, which makes keys of its own."""
    match bug:
        case Bug.HOST_IGNORES_ADAPTER:
            return (identity.salt, identity.weights_version)
        case Bug.HOST_IGNORES_SALT:
            return (identity.adapter, identity.version, identity.weights_version)
        case Bug.HOST_IGNORES_WEIGHTS_VERSION:
            return (identity.adapter, identity.version, identity.salt)
        case _:
            return (identity.adapter, identity.version, identity.salt, identity.weights_version)


def next_key(parent: BlockKey, tokens: Sequence[int], tags: Tags, bug: Bug | None) -> BlockKey:
    """The key of the block that holds ``tokens`` after the block ``parent`` (empty for the first)."""
    hashed = tokens[:-1] if bug is Bug.BLOCK_HASH_WITHOUT_LAST_TOKEN else tokens
    before = b"" if bug is Bug.BLOCK_HASH_WITHOUT_PARENT else parent
    content = before + array("i", hashed).tobytes() + repr(tags).encode()
    return hashlib.blake2b(content, digest_size=1 if bug is Bug.BLOCK_HASH_TRUNCATED else 16).digest()
