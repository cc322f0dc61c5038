"""The functions of SGLang's kernel package that its scheduler calls on a CPU, in plain torch."""

from __future__ import annotations

import ctypes
from typing import Any


def assign_req_to_token_pool_cpu(
    req_pool_indices: Any, req_to_token: Any, start_offset: Any, end_offset: Any, out_cache_loc: Any, width: int
) -> None:
    """Enter the cache locations of each request's new tokens into its row, one request after another."""
    taken = 0
    for row, start, end in zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist(), strict=True):
        length = end - start
        req_to_token[row, start:end] = out_cache_loc[taken : taken + length].to(req_to_token.dtype)
        taken += length


def copy_all_layer_kv_cache_cpu(data_ptrs: Any, strides: Any, tgt_loc: Any, src_loc: Any) -> None:
    """Copy cache entries within the buffer of every layer; all are read before one is written."""
    for start, stride in zip(data_ptrs.tolist(), strides.tolist(), strict=True):
        entries = [ctypes.string_at(start + source * stride, stride) for source in src_loc.tolist()]
        for target, entry in zip(tgt_loc.tolist(), entries, strict=True):
            ctypes.memmove(start + target * stride, entry, stride)


def __getattr__(name: str) -> Any:
    """Whatever else is imported must not be called."""
    if name.startswith("__"):
        raise AttributeError(name)

    def absent(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"sgl_kernel.{name} has no stand-in")

    return absent
