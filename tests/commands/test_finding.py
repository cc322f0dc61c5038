"""The main job: the adapter-scale bug of a real llama-server is found, reduced, proved, told and replayed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from running import Ended, masked, stalefuzz

SEED = 1


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    folder = tmp_path_factory.mktemp("found")
    return stalefuzz("run", "-x", "--scenario", "adapter-scale", "--seed", str(SEED), folder=folder)


@pytest.fixture(scope="module")
def finding(found: Ended) -> dict[str, Any]:
    (only,) = found.record["findings"]
    assert isinstance(only, dict)
    return only


@pytest.fixture(scope="module")
def finding_file(found: Ended, finding: dict[str, Any]) -> Path:
    return found.out / "findings" / f"{finding['id']}.json"


def test_it_is_a_finding(found: Ended) -> None:
    assert found.status == 1
    assert found.stderr == ""
    assert found.record["verdict"] == "finding"
    assert found.record["reasons"] == []


def test_the_reduced_plan_is_three_requests(finding: dict[str, Any]) -> None:
    donor, between, wrong = finding["plan"]
    assert finding["operations"] == 3
    assert finding["wrong"] == 3
    assert finding["minimal"] is True
    assert donor["prompt"]["root"] == wrong["prompt"]["root"] != between["prompt"]["root"]
    assert donor["scales"] != wrong["scales"] == between["scales"]


def test_it_is_proved(finding: dict[str, Any]) -> None:
    assert finding["reproduced"] == {"k": 5, "n": 5}
    assert finding["alone"]["clean"] is True
    assert finding["control"]["clean"] is True
    assert finding["control"]["reused"] == finding["steps"][2]["reused"] > 0
    assert finding["reuse_witnessed"] is True
    assert finding["max_abs_logprob_delta"] > 1000 * finding["bound"]


def test_it_is_explained(finding: dict[str, Any]) -> None:
    assert set(finding["necessary"]) == {"shared-prefix", "scale-change", "request-between", "setting-between"}
    assert finding["stale_source"]["step"] == 1
    assert {"setting": "--cache-ram 0", "clean": True} in finding["mitigations"]


def test_run_json_keeps_the_contract(found: Ended) -> None:
    record = found.record
    assert set(record) >= {
        *("schema", "verdict", "reasons", "seed", "elapsed_s", "target", "reference", "noise", "steps", "requests"),
        *("reuse", "exercised", "not_exercised", "time_to_first_finding_s", "suspects", "reuse_lost", "findings"),
    }
    assert record["schema"] == 1
    assert record["seed"] == SEED
    assert set(record["target"]) >= {"engine", "version", "launch", "capabilities"}
    assert record["reference"]["mode"] == "launched"
    assert {"class", "bound", "samples"} <= set(record["noise"][0])
    assert set(record["requests"]) == {"target", "reference"}
    assert 0 < record["reuse"]["hits"] < record["steps"] == record["exercised"]["complete"]
    assert 0 < record["time_to_first_finding_s"] <= record["elapsed_s"]


def test_the_finding_keeps_the_contract(finding: dict[str, Any]) -> None:
    assert set(finding) >= {
        *("id", "title", "kind", "oracle", "known", "plan", "operations", "story", "settings", "reproduced", "control"),
        *("reuse_witnessed", "max_abs_logprob_delta", "bound", "necessary", "stale_source", "mitigations"),
    }
    assert len(finding["story"]) == len(finding["plan"])
    assert finding["settings"]["model"].startswith("tiny:dense:")


def test_the_finding_has_a_file_without_paths(found: Ended, finding_file: Path, finding: dict[str, Any]) -> None:
    assert json.loads(finding_file.read_text()) == finding
    assert str(Path.home()) not in finding_file.read_text()
    assert [event["finding"]["id"] for event in found.events("found")] == [finding["id"]]


def test_nothing_else_is_left_in_the_folder(found: Ended, finding_file: Path) -> None:
    written = {path.relative_to(found.out).as_posix() for path in found.out.rglob("*") if path.is_file()}
    assert {"run.json", "events.jsonl", f"findings/{finding_file.name}"} <= written
    assert not [name for name in written if name.endswith(".part")]


def test_what_the_user_sees(found: Ended) -> None:
    lines = masked(found.stdout).splitlines()
    block = lines[next(at for at, line in enumerate(lines) if line.startswith("FINDING")) :]
    assert block[0] == (
        "FINDING d05d71  adapter scale of an evicted entry        5 of 5 · right without history · reuse witnessed"
    )
    assert [line[:15] for line in block[1:4]] == ["  1  complete P", "  2  complete Q", "  3  complete P"]
    assert block[3].endswith("<- wrong by # (bound #)")
    assert re.fullmatch(
        r"  Step 3 was answered with the state that step 1 computed at a=\S+: "
        r"with step 1 at a=\S+ the same reuse is right\.",
        block[4],
    )
    assert block[5] == (
        "  Needs: the prefix that steps 1 and 3 share; the scale change between steps 1 and 3; another request in "
        "between; that request at the scales of step 3."
    )
    assert block[6].startswith("  Clean with ")
    assert "  stalefuzz replay stalefuzz-out/findings/d05d71.json" in block
    assert block[-1].startswith("  seed 1; stalefuzz-out/run.json")


def test_plain_text_where_nobody_watches(found: Ended) -> None:
    assert "\x1b" not in found.said


def test_the_same_seed_gives_the_same_run(found: Ended, tmp_path: Path) -> None:
    again = stalefuzz("run", "-x", "--scenario", "adapter-scale", "--seed", str(SEED), folder=tmp_path)
    assert _plans(again) == _plans(found)
    assert again.record["steps"] == found.record["steps"]
    assert [(event["step"], event["delta"]) for event in again.events("suspected")] == [
        (event["step"], event["delta"]) for event in found.events("suspected")
    ]


def _plans(run: Ended) -> list[tuple[Any, Any]]:
    return [(finding["original"], finding["plan"]) for finding in run.record["findings"]]


def test_replay_reproduces(finding_file: Path, tmp_path: Path) -> None:
    replayed = stalefuzz("replay", finding_file, folder=tmp_path)
    assert replayed.status == 1
    assert replayed.stdout.startswith("REPRODUCED ")


def test_replay_takes_server_flags(finding_file: Path, tmp_path: Path) -> None:
    """With two slots each prompt keeps its own, where the server's guard works and lawful reuse goes on."""
    replayed = stalefuzz("replay", finding_file, "--", "-np", "2", folder=tmp_path)
    assert replayed.status == 0
    assert replayed.stdout.startswith("FIXED ")


@pytest.mark.parametrize("flags", [["--no-cache-prompt"], ["--cache-ram", "0"]])
def test_replay_cannot_tell_where_nothing_is_reused(finding_file: Path, tmp_path: Path, flags: list[str]) -> None:
    replayed = stalefuzz("replay", finding_file, "--", *flags, folder=tmp_path)
    assert replayed.status == 3
    assert replayed.stdout.startswith("ERROR ")
    assert "nothing was reused" in replayed.stdout


def test_replay_goes_on_after_a_bad_file(finding_file: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    replayed = stalefuzz("replay", "bad.json", "missing.json", finding_file, folder=tmp_path)
    assert replayed.status == 1
    assert [line.split()[0] for line in replayed.stdout.splitlines()] == ["ERROR", "ERROR", "REPRODUCED"]
    assert replayed.stderr == ""


def test_replay_on_another_model_says_what_is_missing(finding_file: Path, tmp_path: Path) -> None:
    replayed = stalefuzz("replay", finding_file, "--adapter", "none", folder=tmp_path)
    assert replayed.status == 3
    assert "adapter" in replayed.stdout


def test_replay_takes_a_folder_or_an_id(finding_file: Path, tmp_path: Path) -> None:
    """The folder of a run stands for all of its findings, an id for the one of the run in stalefuzz-out."""
    (tmp_path / "stalefuzz-out" / "findings").mkdir(parents=True)
    copy = tmp_path / "stalefuzz-out" / "findings" / finding_file.name
    copy.write_bytes(finding_file.read_bytes())
    for word in ("stalefuzz-out", finding_file.stem):
        replayed = stalefuzz("replay", word, folder=tmp_path)
        assert replayed.status == 1
        assert replayed.stdout.startswith("REPRODUCED ")


def test_replay_of_a_folder_without_findings_reproduces_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    replayed = stalefuzz("replay", "empty", folder=tmp_path)
    assert replayed.status == 2
    assert "no finding" in replayed.said
