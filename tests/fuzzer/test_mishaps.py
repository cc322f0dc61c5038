"""A server of ours that dies: when it is started again, and what is said of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from running import eventually, llama_server

from fuzzer.errors import CannotJudge
from fuzzer.servers.launched import LaunchedServer
from fuzzer.servers.llama_server import LlamaServer
from fuzzer.target import Mishap, Target
from oracles.observations import Failure


@pytest.fixture
def server() -> Iterator[LaunchedServer]:
    with llama_server() as running:
        yield running


def kill(server: LaunchedServer) -> None:
    os.kill(server.pid, signal.SIGKILL)
    assert server.ending() == "it was ended by SIGKILL"


def test_a_death_in_a_plan_is_the_plans_to_explain(server: LaunchedServer) -> None:
    told: list[Mishap] = []
    target = Target(LlamaServer, process=server, notice=told.append)
    eventually(server.log_tail, "it logs, from a thread of its own")
    kill(server)
    failure = target.lost(Failure("no answer", dead=True))
    assert failure.reason == "no answer: it was ended by SIGKILL"
    assert failure.log
    target.prepare(1)
    assert told == [Mishap("the target stopped answering (it was ended by SIGKILL) and is started again")]
    assert (target.lives, target.dead) == (2, False)
    target.server.close()


def test_a_death_between_plans_is_owned_up_to(server: LaunchedServer) -> None:
    told: list[Mishap] = []
    target = Target(LlamaServer, process=server, notice=told.append)
    kill(server)
    target.prepare(1)
    assert told == [
        Mishap("the target died between two plans (it was ended by SIGKILL) and is started again", explained=False)
    ]
    target.server.close()


def test_first_tokens_that_run_out_are_no_mishap(server: LaunchedServer) -> None:
    told: list[Mishap] = []
    target = Target(LlamaServer, process=server, notice=told.append)
    target.roots.take(target.roots.left - 1)
    target.prepare(1)
    assert target.lives == 1
    target.prepare(2)
    assert (target.lives, told) == (2, [])
    assert target.roots.left == target.server.capabilities.space.count
    target.server.close()


def test_versions_that_could_not_be_brought_back_end_that_life(server: LaunchedServer) -> None:
    told: list[Mishap] = []
    target = Target(LlamaServer, process=server, notice=told.append)
    target.unrestored("no such adapter")
    target.prepare(1)
    said = "the target could not be given back its first adapters or weights (no such adapter)"
    assert told == [Mishap(f"{said} and is started again")]
    target.prepare(1)
    assert (target.lives, len(told)) == (2, 1)
    target.server.close()


def test_nothing_more_runs_on_a_server_of_the_users_that_was_left_with_other_versions(server: LaunchedServer) -> None:
    target = Target(LlamaServer, url=server.url)
    target.unrestored("no such adapter")
    for _ in range(2):
        with pytest.raises(CannotJudge, match=r"first adapters or weights \(no such adapter\)"):
            target.prepare(1)
    target.server.close()
