"""The output folder: every file is whole at any time, also when the run is killed."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread
from typing import TextIO

import msgspec

from reports.events import Event, Found
from reports.happenings import read_happenings
from reports.junit import junit
from reports.record import FindingRecord, RunRecord
from reports.reproduce.scripts import Scripts, compile_templates, scripts_of
from reports.sarif import sarif
from reports.summary import summary

EVENTS = "events.jsonl"
RECORD = "run.json"
_RENDER_EVERY_S = 10.0


class Store:
    """Writes everything below ``folder`` while a run goes on; ``resume`` continues its event stream."""

    def __init__(self, folder: Path, *, resume: bool = False) -> None:
        self.folder = folder
        (folder / "findings").mkdir(parents=True, exist_ok=True)
        self._events: TextIO = (folder / EVENTS).open("a" if resume else "w", encoding="utf-8")
        self._rendered_s: float | None = None
        self._found = 0

    def event(self, event: Event) -> None:
        """Append one event; a finding also gets its files."""
        self._events.write(encoded(event).decode() + "\n")
        if isinstance(event, Found):
            self._events.flush()
            write_finding(self.folder, event.finding, scripts_of(event.finding))

    def run(self, record: RunRecord) -> None:
        """Write run.json, and the reports where they have aged."""
        self._events.flush()
        write_atomically(self.folder / RECORD, pretty(record))
        if record.steps and self._aged(record):
            self.reports(record)

    def _aged(self, record: RunRecord) -> bool:
        if self._rendered_s is None or len(record.findings) != self._found:
            return True
        return record.elapsed_s - self._rendered_s > _RENDER_EVERY_S

    def reports(self, record: RunRecord) -> None:
        """Write every report."""
        self._rendered_s, self._found = record.elapsed_s, len(record.findings)
        self._events.flush()
        write_reports(self.folder, record)

    def close(self) -> None:
        """Close the event stream."""
        self._events.close()


def warm_up() -> None:
    """Have the templates compiled beside whatever else is going on, before the first report needs them."""

    def compiled() -> None:
        from reports.html.page import template

        template()
        compile_templates()

    Thread(target=compiled, name="templates", daemon=True).start()


def write_reports(folder: Path, record: RunRecord) -> None:
    """junit.xml, run.sarif, summary.md and report.html, all from the record; events come from beside it.

    The page comes last: where it is, all of them are, also when a run is killed between two files.
    """
    scripts = {finding.id: scripts_of(finding) for finding in record.findings}
    # Templates take a tenth of a second to load, which every start of a command would pay for.
    from reports.html.page import render

    page = render(record, scripts, read_happenings(folder / EVENTS))
    write_atomically(folder / "junit.xml", junit(record))
    write_atomically(folder / "run.sarif", sarif(record))
    write_atomically(folder / "summary.md", summary(record).encode())
    write_atomically(folder / "report.html", page.encode())


def write_finding(folder: Path, finding: FindingRecord, scripts: Scripts) -> None:
    """findings/<id>.json, and beside it a folder with the reproducers."""
    write_atomically(folder / "findings" / f"{finding.id}.json", pretty(finding))
    own = folder / "findings" / finding.id
    own.mkdir(exist_ok=True)
    for name, text in (("repro.sh", scripts.shell), ("test_repro.py", scripts.pytest), ("ISSUE.md", scripts.issue)):
        if text:
            write_atomically(own / name, text.encode(), mode=0o755 if name.endswith(".sh") else 0o644)


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file so that a reader, or a kill, never meets half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.chmod(mode)
    part.replace(path)


def pretty(record: object) -> bytes:
    """Indented JSON."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def encoded(event: Event) -> bytes:
    """One line of events.jsonl; a finding is named there and kept in its own file."""
    if not isinstance(event, Found):
        return msgspec.json.encode(event)
    finding = event.finding
    named = {"id": finding.id, "title": finding.title, "kind": finding.kind, "known": finding.known}
    return msgspec.json.encode({"event": "found", "at": event.at, "finding": named})
