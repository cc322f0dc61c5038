"""Embedded llama-servers with the tiny dense model, ready for any operation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuzzer.models.tiny import tiny_model
from fuzzer.servers.launched import launch_embedded
from fuzzer.servers.llama_launch import EXACT
from fuzzer.servers.llama_server import LlamaServer

_FLAGS = ("--ctx-size", "8192", "--cache-ram", "64", "--no-warmup", *EXACT.argv())


@contextmanager
def operated(folder: Path, *flags: str) -> Iterator[LlamaServer]:
    """A server with these flags; slots are saved below ``folder``."""
    model = tiny_model("dense")
    adapters = [word for path in model.adapters for word in ("--lora", str(path))]
    saving = ("--slot-save-path", str(folder))
    with launch_embedded((*_FLAGS, *flags, *saving, "--model", str(model.path), *adapters)) as process:
        server = LlamaServer(process.url, admin=True)
        yield server
        server.close()
