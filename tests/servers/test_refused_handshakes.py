"""An adapter that does not find its engine says so and leaves no connection open."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable

import pytest
from answering import answering

from fuzzer.errors import UnreachableError
from fuzzer.servers.llama_server import LlamaServer
from fuzzer.servers.protocol import Server
from fuzzer.servers.sglang_server import SglangServer
from fuzzer.servers.vllm_server import VllmServer


def _open_sockets() -> list[socket.socket]:
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, socket.socket) and one.fileno() >= 0]


@pytest.mark.parametrize("connect", [LlamaServer, VllmServer, SglangServer])
def test_nothing_stays_open(connect: Callable[[str], Server]) -> None:
    with answering({}) as server:
        with pytest.raises(UnreachableError, match="answers, but not as"):
            connect(server.url)
        assert server.asked
        peers = [one.getpeername() for one in _open_sockets() if _is_connected(one)]
        assert server.server_address not in peers


def _is_connected(one: socket.socket) -> bool:
    try:
        one.getpeername()
    except OSError:
        return False
    return True
