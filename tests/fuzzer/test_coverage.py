"""What a run did not come to is told for every kind of operation."""

from __future__ import annotations

from fuzzer.coverage import left_out
from scenarios.operations import KINDS


def test_each_kind_was_done_or_has_its_reason() -> None:
    able = ("complete", "start", "save", "restore")
    left = left_out({"complete": 7, "save": 1}, able)
    assert set(left) == set(KINDS) - {"complete", "save"}
    assert left["start"] == left["restore"] == "no plan came to it"
    assert set(left.values()) - {left["start"]} == {left["flush"]}
    assert left["flush"].startswith("the server cannot do it")
