"""``stalefuzz report DIR``: every report of a run again, from its run.json."""

from __future__ import annotations

from pathlib import Path

import msgspec
from rich.text import Text

from fuzzer.errors import UsageError
from fuzzer.exit_status import Exit
from fuzzer.finding_file import checked_id
from reports.console import console
from reports.folder import RECORD, pretty, write_atomically, write_finding, write_reports
from reports.record import SCHEMA, RunRecord
from reports.redaction import redacted
from reports.reproduce.scripts import scripts_of


def report_command(folder: Path, *, redact: bool) -> Exit:
    """Render everything; raises UsageError where there is no run."""
    record = read_run(folder)
    if redact:
        record = redacted(record)
        write_atomically(folder / RECORD, pretty(record))
    (folder / "findings").mkdir(exist_ok=True)
    for finding in record.findings:
        write_finding(folder, finding, scripts_of(finding))
    write_reports(folder, record)
    console().print(Text(str(folder / "report.html")), highlight=False, soft_wrap=True)
    return Exit.CLEAN


def read_run(folder: Path) -> RunRecord:
    """The record of a run from its folder, or from a run.json; raises UsageError."""
    path = folder / RECORD if folder.is_dir() else folder
    try:
        content = path.read_bytes()
        record = msgspec.json.decode(content, type=RunRecord)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}; give the folder that a run wrote") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is no record of a run: {error}") from None
    if record.schema != SCHEMA:
        raise UsageError(f"{path} is of format {record.schema}; this stalefuzz reads format {SCHEMA}")
    for finding in record.findings:
        checked_id(path, finding.id)
    return record
