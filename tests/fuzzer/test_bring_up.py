"""What is brought up for a command ends in an order in which nobody uses what is closed."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import ExitStack

import pytest

from fuzzer.bring_up import bring_up
from fuzzer.differential import Differential
from fuzzer.options import ServerOptions
from fuzzer.reference import Reference
from fuzzer.rig import Rig
from fuzzer.servers.protocol import Request
from oracles.observations import Observation

REQUESTS = 20


def test_the_reference_is_closed_once_no_thread_asks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leg that nobody waits for, of a command that ends: closed under it, the reference's connection came back."""
    ending = threading.Event()
    legs: list[Future[list[object]]] = []
    done_when_closed: list[bool] = []
    close = Reference.close

    def recorded(reference: Reference) -> None:
        done_when_closed.extend(leg.done() for leg in legs)
        close(reference)

    monkeypatch.setattr(Reference, "close", recorded)
    with ExitStack() as stack:
        differential, _ = bring_up(Rig(ServerOptions(launch="zoo")), stack)
        legs.append(_leg(differential, ending))
        stack.callback(ending.set)
    assert done_when_closed == [True]
    assert all(isinstance(answer, Observation) for answer in legs[0].result())


def _leg(differential: Differential, ending: threading.Event) -> Future[list[object]]:
    """Requests in the reference's thread that begin when everything is about to end."""
    prompt = tuple(differential.target.roots.take(1))

    def ask() -> list[object]:
        ending.wait()
        request = Request(prompt, 1, (), reuse=False)
        return [differential.reference.answer(request) for _ in range(REQUESTS)]

    return differential._pool.submit(ask)
