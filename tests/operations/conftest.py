"""Two embedded llama-servers with the tiny dense model: one slot, and two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzzer.models.tiny import tiny_model
from fuzzer.servers.launched import launch_embedded
from fuzzer.servers.llama_launch import EXACT
from fuzzer.servers.llama_server import LlamaServer

_FLAGS = ("--ctx-size", "8192", "--cache-ram", "64", "--no-warmup", *EXACT.argv())


def _server(folder: Path, *flags: str) -> Iterator[LlamaServer]:
    model = tiny_model("dense")
    adapters = [word for path in model.adapters for word in ("--lora", str(path))]
    saving = ("--slot-save-path", str(folder))
    with launch_embedded((*_FLAGS, *flags, *saving, "--model", str(model.path), *adapters)) as process:
        server = LlamaServer(process.url, admin=True)
        yield server
        server.close()


@pytest.fixture(scope="session")
def one_slot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """One slot, the RAM cache on."""
    yield from _server(tmp_path_factory.mktemp("one"), "-np", "1")


@pytest.fixture(scope="session")
def two_slots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """Two slots, the RAM cache on."""
    yield from _server(tmp_path_factory.mktemp("two"), "-np", "2")


@pytest.fixture(scope="session")
def no_ram(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """One slot, no RAM cache: what leaves the slot is gone."""
    yield from _server(tmp_path_factory.mktemp("none"), "-np", "1", "--cache-ram", "0")
