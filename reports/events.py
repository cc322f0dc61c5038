"""What happens in a run, one small struct each; every live report is one consumer of this stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from oracles.noise import Noise
from reports.record import FindingRecord, ReferenceRecord, SuspectRecord, TargetRecord


class Event(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    """Root of all events; ``at`` is in seconds since the run began."""

    at: float


class Started(Event, frozen=True, tag="started"):
    """Servers are being started or reached."""

    what: str


class Probed(Event, frozen=True, tag="probed"):
    """Target and reference answer and the noise is measured."""

    target: TargetRecord
    reference: ReferenceRecord
    noise: Noise
    numerics: str
    seed: int
    measured: str = ""
    """The day on which the bounds were measured, where they are re-used."""


class Explored(Event, frozen=True, tag="explored"):
    """A plan ran; counts are totals since the run began."""

    steps: int
    target_requests: int
    reference_requests: int
    hits: int
    reused_tokens: int


class Suspected(Event, frozen=True, tag="suspected"):
    """A step diverged; it goes through the ladder now."""

    step: int
    oracle: str
    delta: float | None


class Found(Event, frozen=True, tag="found"):
    """A suspect became a finding."""

    finding: FindingRecord


class Dropped(Event, frozen=True, tag="dropped"):
    """A suspect stays a suspect, and why."""

    suspect: SuspectRecord


class Restarted(Event, frozen=True, tag="restarted"):
    """A server of ours was started again."""

    why: str


class Shared(Event, frozen=True, tag="shared"):
    """Somebody else did something to the target."""

    why: str


class Finished(Event, frozen=True, tag="finished"):
    """The run is over; the record says the rest."""

    verdict: str
    reasons: list[str]


Sink = Callable[[Event], Any]
