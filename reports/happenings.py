"""The notable events of a run, read back from events.jsonl: few enough for a page."""

from __future__ import annotations

from pathlib import Path

import msgspec

MOST = 400
_LONGEST_LINE = 100_000


class _Line(msgspec.Struct, frozen=True):
    event: str
    at: float
    what: str = ""
    why: str = ""
    verdict: str = ""
    step: int | None = None
    oracle: str = ""
    delta: float | None = None
    finding: dict[str, object] = {}
    suspect: dict[str, object] = {}


class Happening(msgspec.Struct, frozen=True):
    """One event in words."""

    at: float
    event: str
    words: str
    finding: str = ""


class Happenings(msgspec.Struct, frozen=True):
    """Events of a run; ``explored`` counts the plans that ran and are not listed."""

    listed: list[Happening]
    explored: int = 0
    left_out: int = 0

    @property
    def kinds(self) -> list[str]:
        """The kinds of event that are listed."""
        return list(dict.fromkeys(happening.event for happening in self.listed))


NONE = Happenings([])


def read_happenings(path: Path) -> Happenings:
    """What happened, from a run's event stream; a line that is cut off or foreign is passed over."""
    listed: list[Happening] = []
    explored = left_out = 0
    decoder = msgspec.json.Decoder(_Line)
    try:
        stream = path.open("rb")
    except OSError:
        return NONE
    with stream:
        for line in stream:
            if line.startswith(b'{"event":"explored"'):
                explored += 1
            elif len(listed) >= MOST:
                left_out += 1
            elif len(line) <= _LONGEST_LINE:
                listed += _read(decoder, line)
    return Happenings(listed, explored, left_out)


def _read(decoder: msgspec.json.Decoder[_Line], line: bytes) -> list[Happening]:
    try:
        event = decoder.decode(line)
    except msgspec.DecodeError:
        return []
    finding = str(event.finding.get("id", ""))
    return [Happening(event.at, event.event, _words(event), finding)]


def _words(event: _Line) -> str:
    match event.event:
        case "suspected":
            delta = f", off by {event.delta:.2g} nats" if event.delta is not None else ""
            return f"step {event.step} diverged ({event.oracle}{delta})"
        case "found":
            return f"{event.finding.get('id', '')} {event.finding.get('title', '')}"
        case "dropped":
            return f"step {event.suspect.get('step', '')}: {event.suspect.get('reason', '')}"
        case "probed":
            return "target and reference answer, noise is measured"
        case "finished":
            return event.verdict
    return event.what or event.why
