"""Reuse that was lost: what a maintainer gets to see it with, run against a real server."""

from __future__ import annotations

import subprocess
from contextlib import closing

import msgspec
import pytest
from making import ask, path
from real_run import real_record
from running import llama_server

from fuzzer.differential import Outcome
from fuzzer.execution import Roots, run_plan
from fuzzer.servers.llama_server import LlamaServer
from fuzzer.triage.account import wire_of
from oracles.lost_reuse import losses
from reports.happenings import NONE
from reports.html.page import render
from reports.record import LostReuse
from reports.redaction import redacted
from reports.reproduce.curl_lines import curl_lines
from reports.summary import summary
from scenarios.operations import Complete
from scenarios.plans import Plan
from scenarios.story import story_lines

P, Q = path(0, ("a", 25)), path(1, ("a", 25))
PLAN = Plan((ask(P), ask(Q), ask(path(1)), Complete(prompt=Q, slot=0)))
"""ggml-org/llama.cpp#28139: a request pinned to a slot is looked up in that slot only."""


@pytest.fixture(scope="module")
def lost() -> LostReuse:
    with llama_server("-np", "2") as process, closing(LlamaServer(process.url)) as server:
        trace = run_plan(server, PLAN, Roots((9, 10)))
        (loss,) = losses(PLAN, trace)
        wire = wire_of(server, Outcome(PLAN, trace, trace, []), loss.step)
    return LostReuse(loss.step + 1, loss.tokens, story_lines(PLAN), promise=loss.promise, settings=["-np"], wire=wire)


def test_the_requests_show_the_missing_hit(lost: LostReuse) -> None:
    with llama_server("-np", "2") as process:
        script = f"URL={process.url}\n{curl_lines(lost.wire, lost.story)}"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    *_, shorter, pinned = done.stdout.split()
    assert (lost.step, lost.tokens) == (4, 26)
    assert (shorter, pinned) == ('"cache_n":0', '"cache_n":1')


def test_reports_tell_of_it(lost: LostReuse) -> None:
    record = msgspec.structs.replace(real_record(), reuse_lost=[lost])
    said = summary(record)
    assert "Step 4 computed again what it could have reused, up to 26 prompt tokens" in said
    assert "the server finds its state when no slot is named" in said
    page = render(record, {}, NONE)
    assert 'href="#lost"' in page
    assert "curl -s &quot;$URL&quot;" in page or 'curl -s "$URL"' in page
    assert "no slot is named" in page


def test_nothing_of_a_prompt_is_left_in_a_redacted_run(lost: LostReuse) -> None:
    record = redacted(msgspec.structs.replace(real_record(), reuse_lost=[lost]))
    assert record.reuse_lost[0].story == lost.story
    assert record.reuse_lost[0].wire == []
