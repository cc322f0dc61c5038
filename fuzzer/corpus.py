"""A corpus: plans in a folder that run before any new one is drawn; earlier findings, and plans that a team shares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from fuzzer.differential import Differential
from fuzzer.errors import UsageError
from fuzzer.finding_file import plan_of, read_finding
from oracles.arms import control_arm
from reports.record import SuspectRecord
from scenarios.capabilities import Capabilities
from scenarios.fitting import lacking
from scenarios.plans import Plan, decode, requests

CORPUS = "corpus"
"""The scenario that a plan of the corpus without a finding belongs to."""
_LARGEST = 1 << 20


class Entry(msgspec.Struct, frozen=True):
    """A plan and where it comes from; ``finding`` is empty for a bare plan."""

    path: Path
    plan: Plan
    finding: str = ""
    scenario: str = CORPUS


class _Probe(msgspec.Struct, frozen=True):
    id: str | None = None
    operations: object = None


class Corpus(msgspec.Struct, frozen=True):
    """The plans of a folder, in order of their file names; ``skipped`` says which files hold none, and why."""

    entries: tuple[Entry, ...] = ()
    skipped: tuple[str, ...] = ()


NOTHING = Corpus()


def read_corpus(folder: Path) -> Corpus:
    """Every *.json below ``folder``; raises UsageError where there is no such folder."""
    if not folder.is_dir():
        raise UsageError(f"--corpus {folder}: there is no such folder")
    entries: list[Entry] = []
    skipped: list[str] = []
    for path in sorted(folder.rglob("*.json")):
        try:
            entries.append(_entry(path))
        except UsageError as error:
            skipped.append(str(error))
    return Corpus(tuple(entries), tuple(skipped))


def from_suspects(suspects: Sequence[SuspectRecord]) -> tuple[Entry, ...]:
    """What an earlier run left unconfirmed."""
    return tuple(Entry(Path(f"suspect-{at}"), Plan(suspect.plan)) for at, suspect in enumerate(suspects, 1))


def lacks_for(entry: Entry, capabilities: Capabilities) -> str | None:
    """Why a server cannot run a plan; None where it can."""
    lacks = lacking(entry.plan, capabilities)
    if lacks is not None:
        return lacks
    longest = max((request.prompt.length + request.tokens for _, request in requests(entry.plan)), default=0)
    return f"the plan needs a context of {longest} tokens" if longest > capabilities.context else None


def still_reuses(differential: Differential, entry: Entry) -> bool:
    """Whether the last request of a plan still reuses something where that is lawful: else it tests nothing."""
    last = max((at for at, _ in requests(entry.plan)), default=None)
    if last is None:
        return False
    return bool(differential.run(control_arm(entry.plan, last) or entry.plan).arm(last).reused)


def _entry(path: Path) -> Entry:
    try:
        if path.stat().st_size > _LARGEST and "findings" not in path.parts:
            raise UsageError(f"{path} is larger than any plan")
        content = path.read_bytes()
        kind = msgspec.json.decode(content, type=_Probe)
        if kind.id is None:
            return Entry(path, decode(content))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is no plan: {error}") from None
    finding = read_finding(path)
    return Entry(path, plan_of(finding), finding.id, finding.scenario)
