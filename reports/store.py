"""The output folder: every file is whole at any time, also when the run is killed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

import msgspec

from reports.events import Event, Found
from reports.record import FindingRecord, RunRecord


class Store:
    """Writes run.json, findings/<id>.json and events.jsonl below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "findings").mkdir(parents=True, exist_ok=True)
        self._events: TextIO = (folder / "events.jsonl").open("w", encoding="utf-8")

    def finding_path(self, finding: FindingRecord) -> Path:
        """Where a finding's file is."""
        return self.folder / "findings" / f"{finding.id}.json"

    def event(self, event: Event) -> None:
        """Append one event; a finding also gets its file."""
        self._events.write(msgspec.json.encode(event).decode() + "\n")
        if isinstance(event, Found):
            self._events.flush()
            write_atomically(self.finding_path(event.finding), _pretty(event.finding))

    def run(self, record: RunRecord) -> None:
        """Write run.json."""
        self._events.flush()
        write_atomically(self.folder / "run.json", _pretty(record))

    def close(self) -> None:
        """Close the event stream."""
        self._events.close()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a kill, never meets half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)


def _pretty(record: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
