"""junit.xml, run.sarif, summary.md and run.json as other programs read them."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import msgspec
import pytest
from changed_records import CHANGES, inconclusive, known
from real_run import SEED, real_finding, real_record, real_run
from running import eventually, stalefuzz, started
from synthetic_runs import NASTY, large, nasty

from reports.escaping import code_block, markdown, printable, xml_text
from reports.junit import junit
from reports.record import FindingRecord, RunRecord
from reports.sarif import sarif
from reports.series import MOST
from reports.severity import Severity, severity_of
from reports.summary import append_to_step_summary, summary


def check_against_schema(document: bytes) -> Xml.Element:
    """The rules of the schema that Jenkins and its successors use: elements, their order, attributes, counts."""
    root = Xml.fromstring(document)
    assert root.tag == "testsuites"
    for suite in root:
        assert suite.tag == "testsuite"
        assert [child.tag for child in suite] == sorted(
            (child.tag for child in suite), key=["properties", "testcase", "system-out", "system-err"].index
        )
        cases = suite.findall("testcase")
        assert int(suite.attrib["tests"]) == len(cases)
        for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[plural]) == sum(case.find(tag) is not None for case in cases)
        for case in cases:
            assert {"classname", "name", "time"} <= case.attrib.keys()
            assert float(case.attrib["time"]) >= 0
            assert {child.tag for child in case} <= {"skipped", "failure", "error", "system-out", "system-err"}
        assert len({(case.attrib["classname"], case.attrib["name"]) for case in cases}) == len(cases)
    return root


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_junit_is_valid_whatever_happened(change: Any) -> None:
    check_against_schema(junit(change(real_record())))


def test_junit_has_a_case_a_scenario_and_oracle_and_the_story_of_each_failure() -> None:
    root = check_against_schema((real_run() / "junit.xml").read_bytes())
    case = root.find(".//testcase[@classname='adapter-scale'][@name='logprobs']")
    assert case is not None
    failure = case.find("failure")
    assert failure is not None
    assert failure.text is not None
    for line in real_finding().story:
        assert line in failure.text
    assert root.find(".//testcase[@name='health']/failure") is None


def test_known_findings_pass_and_open_questions_are_errors() -> None:
    assert check_against_schema(junit(known(real_record()))).find(".//failure") is None
    error = check_against_schema(junit(inconclusive(real_record()))).find(".//error")
    assert error is not None
    assert error.attrib["message"] == "time was up"


def test_sarif_names_each_finding_by_its_fingerprint() -> None:
    document = json.loads((real_run() / "run.sarif").read_bytes())
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["partialFingerprints"] == {"stalefuzzFinding/v1": real_finding().id}
    assert result["level"] in ("none", "note", "warning", "error")
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert (real_run() / uri).is_file()
    assert result["message"]["text"]
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    assert len(steps) == len(real_finding().story)


def test_sarif_suppresses_known_findings() -> None:
    (result,) = json.loads(sarif(known(real_record())))["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "external", "justification": "ticket 7"}]


def test_summary_goes_to_github_too(tmp_path: Path) -> None:
    shown = tmp_path / "step.md"
    shown.write_text("before\n")
    run = stalefuzz(
        "run", "--scenario", "single-scale", "--max-steps", "40", "--seed", "2",
        folder=tmp_path, env={"GITHUB_STEP_SUMMARY": str(shown)},
    )  # fmt: skip
    assert run.status == 0, run.said
    assert shown.read_text() == "before\n" + (run.out / "summary.md").read_text()


def test_summary_that_cannot_be_written_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/nowhere/at/all")
    append_to_step_summary("text")


def test_summary_stays_text_whatever_a_server_says() -> None:
    words = summary(nasty(real_record()))
    outside_of_blocks = "".join(words.split("```")[::2])
    assert not re.search(r"(?<!\\)<", outside_of_blocks)
    assert "\x1b" not in words


def test_events_hold_no_top_k_lists() -> None:
    events = (real_run() / "events.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in events if '"event":"found"' in line]
    assert [event["finding"]["id"] for event in found] == [real_finding().id]
    assert not any('logprob":' in line for line in events)


def test_severity_weighs_what_a_reader_of_answers_sees() -> None:
    finding = real_finding()
    assert finding.severity == Severity.HIGH
    same = msgspec.structs.replace(finding.divergence, gap=0.0) if finding.divergence else None
    assert severity_of("logprobs", same, 0.5) is Severity.MEDIUM
    assert severity_of("logprobs", same, 0.01) is Severity.LOW
    assert severity_of("health", None, None) is Severity.HIGH


def test_series_stays_short_and_even() -> None:
    series = large(real_record()).series
    assert MOST / 4 < len(series) < MOST
    gaps = [after.at - before.at for before, after in pairwise(series)]
    assert max(gaps) <= 4 * min(gaps)


def test_record_survives_its_own_format(tmp_path: Path) -> None:
    record = large(real_record())
    assert msgspec.json.decode(msgspec.json.encode(record), type=RunRecord) == record
    old = json.loads((real_run() / "findings" / f"{real_finding().id}.json").read_text())
    for key in ("answer", "wire", "wire_alone", "severity", "ablations", "unreduced", "token_texts", "situation"):
        old.pop(key)
    assert msgspec.convert(old, FindingRecord).id == real_finding().id


def test_escapes() -> None:
    assert "\x1b" not in printable(NASTY)
    assert "\u202e" not in printable(NASTY)
    assert xml_text("a\x00b\ud800c\ufffe") == "a\ufffdb\ufffdc\ufffd"
    assert markdown("@me *x* <b> #1 `c`").startswith("@\u200bme \\*x\\* \\<b\\> ")
    assert re.match(r"````\n.*```.*\n````$", code_block("a ``` b"), re.DOTALL)


REDACTED = ("report.html", "run.json", "junit.xml", "run.sarif", "summary.md", "events.jsonl")


def test_redacted_run_shows_shapes_only(tmp_path: Path) -> None:
    """No token, no text of one, no path and no command line of ours is in any file; the finding still replays."""
    run = stalefuzz(
        "run", "-x", "--scenario", "adapter-scale", "--seed", str(SEED), "--time", "120s", "--redact", folder=tmp_path
    )
    assert run.status == 1, run.said
    finding = real_finding()
    assert finding.divergence is not None
    secrets = [text.strip() for text in finding.token_texts.values() if len(text.strip()) > 3]
    secrets += [f'"id": {entry.id}' for entry in finding.divergence.target if entry.id > 100]
    secrets += [str(path.parent) for path in Path.home().glob(".cache/stalefuzz/models/*/dense.gguf")]
    files = [run.out / name for name in REDACTED]
    for path in files + [path for path in (run.out / "findings").rglob("*") if path.is_file()]:
        content = path.read_text()
        for secret in secrets:
            assert not re.search(rf"(?<![\w]){re.escape(secret)}(?![\w])", content), (path, secret)
    assert stalefuzz("replay", f"stalefuzz-out/findings/{finding.id}.json", folder=tmp_path).status == 1


def test_a_killed_run_leaves_record_and_report(tmp_path: Path) -> None:
    """SIGKILL in the middle: everything on disk is whole."""
    with started("run", "--scenario", "single-scale", "--seed", "4", folder=tmp_path) as process:
        page = tmp_path / "stalefuzz-out" / "report.html"
        eventually(lambda: page.is_file() or process.poll() is not None, "a report is written")
        process.kill()
        process.communicate()
    record = msgspec.json.decode((page.parent / "run.json").read_bytes(), type=RunRecord)
    assert record.verdict == "inconclusive"
    assert record.reasons == ["the run did not get to its end"]
    assert record.steps > 0
    assert page.read_text().rstrip().endswith("</html>")
    check_against_schema((page.parent / "junit.xml").read_bytes())
    assert stalefuzz("report", page.parent, folder=tmp_path).status == 0
