"""``python -P -m fuzzer.zoo.serve``: one zoo server on a loopback port of its own, gone when its stdin ends."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy.random  # noqa: F401
import uvicorn
import uvicorn.lifespan.off
import uvicorn.protocols.http.auto

from fuzzer.zoo.app import App
from fuzzer.zoo.arithmetic import Numerics
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.catalogue import MUTANTS
from fuzzer.zoo.llama_server import LlamaServer
from fuzzer.zoo.model import Family, ModelShape
from fuzzer.zoo.requests import FIRST_WEIGHTS
from fuzzer.zoo.settings import Flavour, Settings
from fuzzer.zoo.vllm_server import VllmServer

# What uvicorn and numpy import late would be imported anew by each fresh server: they are forked from this module.

ROWS = {Flavour.LLAMA: 1, Flavour.VLLM: 8}


class _Server(uvicorn.Server):
    """Ends at once when it is told to, not at the next tick: nothing has to be kept, and who ends it waits."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals():
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
            yield


def build(settings: Settings) -> App:
    return LlamaServer(settings).app() if settings.flavour is Flavour.LLAMA else VllmServer(settings).app()


def server(app: App) -> uvicorn.Server:
    """Unstarted; serve it on a socket of your own."""
    config = uvicorn.Config(
        app, log_level="error", access_log=False, lifespan="off", ws="none", timeout_keep_alive=3600
    )
    return _Server(config)


def run(arguments: Sequence[str] | None = None) -> None:
    """A server until its input ends."""
    settings = parse(arguments)
    with listen() as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        print(json.dumps({"url": address, "pid": os.getpid()}), flush=True)
        asyncio.run(_serve(settings, listening))


def listen() -> socket.socket:
    """A free loopback port. The protocol is named, since asyncio switches Nagle's delay off only where it is."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    # From here on a client waits; whoever reads the address before anybody serves would be refused otherwise.
    listening.listen()
    return listening


async def _serve(settings: Settings, listening: socket.socket) -> None:
    running = server(build(settings))
    threading.Thread(target=_stop_at_end_of_input, args=(running,), daemon=True).start()
    await running.serve(sockets=[listening])


def _stop_at_end_of_input(running: uvicorn.Server) -> None:
    while sys.stdin.buffer.read(4096):
        pass
    running.should_exit = running.force_exit = True


def parse(arguments: Sequence[str] | None) -> Settings:
    """Flavour, family and rows that are left out are those which the bug needs."""
    parser = _parser()
    options = parser.parse_args(arguments)
    mutant = MUTANTS.get(options.bug)
    flavour = options.flavour or (mutant.flavour if mutant else Flavour.LLAMA)
    family = options.family or (mutant.family if mutant else Family.DENSE)
    if mutant is not None and flavour is not mutant.flavour:
        parser.error(f"the bug {mutant.name} needs --flavour {mutant.flavour}")
    return Settings(
        flavour=flavour,
        shape=ModelShape(family, options.vocabulary, options.context, options.window),
        weights=options.weights,
        numerics=options.numerics,
        bug=options.bug,
        caching=not options.no_cache,
        rows=options.rows or (mutant.rows if mutant else ROWS[flavour]),
        chunk=options.chunk,
        step_tokens=options.step_tokens,
        ram_entries=options.ram_entries,
        checkpoints=options.checkpoints,
        blocks=options.blocks,
        block_size=options.block_size,
        host_blocks=options.host_blocks,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fuzzer.zoo.serve", description="Serve the zoo's model on a loopback port.")
    parser.add_argument("--flavour", type=Flavour, choices=list(Flavour))
    parser.add_argument("--family", type=Family, choices=list(Family))
    parser.add_argument("--bug", type=Bug, choices=list(Bug), metavar="NAME", help="plant this mistake")
    parser.add_argument("--weights", default=FIRST_WEIGHTS, metavar="NAME", help="weights of the vllm flavour's model")
    parser.add_argument("--numerics", type=Numerics, default=Numerics.FLOAT32, choices=list(Numerics))
    parser.add_argument("--no-cache", action="store_true", help="reuse nothing: the reference")
    parser.add_argument("--rows", type=_count, default=0, help="slots (1), or running requests (8)")
    for name, default in _SIZES.items():
        parser.add_argument(f"--{name}", type=_size, default=default)
    for name, default in _TIERS.items():
        parser.add_argument(f"--{name}", type=_count, default=default, help="0 switches it off")
    return parser


def _count(text: str) -> int:
    return _at_least(0, text)


def _size(text: str) -> int:
    return _at_least(1, text)


def _at_least(least: int, text: str) -> int:
    if int(text) < least:
        raise argparse.ArgumentTypeError(f"{text} is less than {least}")
    return int(text)


_SIZES = {
    "vocabulary": 2048,
    "context": 512,
    "window": 32,
    "chunk": 32,
    "step-tokens": 64,
    "blocks": 64,
    "block-size": 16,
}

_TIERS = {"ram-entries": 8, "checkpoints": 8, "host-blocks": 64}


if __name__ == "__main__":
    run()
