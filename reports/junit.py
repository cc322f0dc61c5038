"""junit.xml: a testcase for each scenario and oracle, so that a CI server shows findings as it shows failed tests."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as Xml

from oracles.judgement import Oracle
from reports.escaping import xml_text
from reports.prose import counted, paragraph, until_fixed
from reports.record import FindingRecord, RunRecord

_VERDICT = "verdict"


def junit(record: RunRecord) -> bytes:
    """The document; known findings pass, an inconclusive run is an error of the testcase ``verdict``."""
    suite = Xml.Element("testsuite", name="stalefuzz")
    _properties(suite, record)
    for scenario in _scenarios(record):
        for oracle in _oracles(record):
            _testcase(suite, scenario, oracle, record)
    _verdict(suite, record)
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(tag) is not None for case in suite.iter("testcase"))))
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("time", f"{record.elapsed_s:.3f}")
    root = Xml.Element("testsuites", {"name": "stalefuzz", **{name: suite.attrib[name] for name in _TOTALS}})
    root.append(suite)
    Xml.indent(root)
    return bytes(Xml.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


_TOTALS = ("tests", "failures", "errors", "time")


def _properties(suite: Xml.Element, record: RunRecord) -> None:
    properties = Xml.SubElement(suite, "properties")
    facts = {"seed": str(record.seed), "verdict": record.verdict, "steps": str(record.steps)}
    for role, server in (("target", record.target), ("reference", record.reference)):
        if server is not None:
            facts[role] = f"{server.engine} {server.version}"
    for name, value in facts.items():
        Xml.SubElement(properties, "property", name=name, value=xml_text(value))


def _scenarios(record: RunRecord) -> list[str]:
    return list(dict.fromkeys([*record.scenarios, *(finding.scenario for finding in record.findings)]))


def _oracles(record: RunRecord) -> list[str]:
    return list(dict.fromkeys([*map(str, Oracle), *(finding.oracle for finding in record.findings)]))


def _testcase(suite: Xml.Element, scenario: str, oracle: str, record: RunRecord) -> None:
    case = Xml.SubElement(suite, "testcase", classname=xml_text(scenario), name=xml_text(oracle))
    mine = [finding for finding in record.findings if (finding.scenario, finding.oracle) == (scenario, oracle)]
    case.set("time", f"{sum(_seconds(finding) for finding in mine):.3f}")
    new = [finding for finding in mine if not finding.known]
    if new:
        message = f"{counted(len(new), 'finding')}: {', '.join(f'{finding.id} {finding.title}' for finding in new)}"
        kinds = ",".join(dict.fromkeys(finding.kind for finding in new))
        failure = Xml.SubElement(case, "failure", message=xml_text(message), type=xml_text(kinds))
        failure.text = xml_text("\n\n".join(map(account, new)))
    known = [finding for finding in mine if finding.known]
    if known:
        note = Xml.SubElement(case, "system-out")
        note.text = xml_text("\n\n".join(f"known: {finding.known_reason}\n{account(finding)}" for finding in known))


def _seconds(finding: FindingRecord) -> float:
    return finding.found_s - finding.suspected_s if finding.suspected_s is not None else 0.0


def _verdict(suite: Xml.Element, record: RunRecord) -> None:
    case = Xml.SubElement(suite, "testcase", classname="stalefuzz", name=_VERDICT, time=f"{record.elapsed_s:.3f}")
    if record.verdict == "inconclusive":
        message = "; ".join(record.reasons) or "no reason was recorded"
        error = Xml.SubElement(case, "error", message=xml_text(message), type="inconclusive")
        error.text = xml_text("\n".join(_lines_of_suspects(record)) or message)


def _lines_of_suspects(record: RunRecord) -> Iterable[str]:
    for suspect in record.suspects[:20]:
        yield f"suspect at step {suspect.step}: {suspect.reason}"
        yield from (f"  {number}  {line}" for number, line in enumerate(suspect.story[:60], 1))


def account(finding: FindingRecord) -> str:
    """A finding as plain text: title, story, explanation, what to do."""
    story = [f"  {number}  {line}" for number, line in enumerate(finding.story[:60], 1)]
    tail = [" ".join(paragraph(finding)), until_fixed(finding), f"stalefuzz replay findings/{finding.id}.json"]
    return "\n".join([f"{finding.id}  {finding.title}", *story, *tail])
