"""The ledger of a run: its record, true at any moment, and the events that tell of every change to it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fuzzer.baseline import NOTHING, Baseline
from fuzzer.calibration import Calibration
from fuzzer.clock import Clock
from fuzzer.company import Sighting
from fuzzer.coverage import left_out, tally
from fuzzer.differential import Differential, Pending
from fuzzer.rig import Rig
from fuzzer.target import Mishap
from fuzzer.unseen import beside_itself, silent, swallowed
from oracles.evidence import Verdict
from oracles.noise import Noise
from reports import events
from reports.record import FindingRecord, LostReuse, Requests, Reuse, RoundingRecord, RunRecord, Sample, SuspectRecord
from reports.series import thinned
from scenarios.operations import KINDS, kind

_SAVE_EVERY_S = 2.0


class Ledger:
    """``sink`` gets the events, ``save`` writes the record."""

    def __init__(
        self,
        record: RunRecord,
        rig: Rig,
        clock: Clock,
        sink: events.Sink,
        save: Callable[[RunRecord], None],
        baseline: Baseline = NOTHING,
    ) -> None:
        self.record = record
        self._rig = rig
        self._clock = clock
        self._sink = sink
        self._save = save
        self._saved_s = 0.0
        self._unexplained: list[str] = []
        self._unseen: list[str] = []
        self._doubt: str | None = None
        self._baseline = baseline
        self._earlier_s = record.elapsed_s
        self._earlier = record.requests

    def now(self) -> float:
        """Seconds that the run has taken, with those before it was resumed."""
        return round(self._earlier_s + self._clock.elapsed(), 3)

    def started(self) -> None:
        """Servers are being started or reached."""
        self._sink(events.Started(self.now(), self._rig.in_words()))
        self.save()

    def calibrated(self, calibration: Calibration) -> None:
        """Target and reference answer alike, and the noise is known."""
        record, rig = self.record, self._rig
        record.numerics = rig.numerics
        record.target, record.reference = rig.target_record(), rig.reference_record()
        record.settings = rig.settings()
        record.noise, record.noise_measured = list(calibration.noise.bounds), calibration.measured
        record.not_exercised |= silent(calibration, rig.numerics)
        record.not_exercised |= beside_itself(record.reference.mode, record.target.capabilities)
        self._unseen = swallowed(calibration, rig.numerics, record.target.capabilities)
        self._sink(
            events.Probed(
                self.now(),
                record.target,
                record.reference,
                calibration.noise,
                rig.numerics,
                record.seed,
                calibration.measured,
            )
        )

    def as_seen(self, noise: Noise) -> Noise:
        """The noise of one setting, which knows how far lawful computation went under the others."""
        return msgspec.structs.replace(noise, elsewhere=max((one.largest for one in self.record.noise), default=0.0))

    def measured(self, noise: Noise, setting: tuple[str, ...]) -> None:
        """Bounds under one setting of the server; they replace what was known of it."""
        suffix = f" [{' '.join(setting)}]" if setting else ""
        known = {bound.situation: bound for bound in self.record.noise}
        for bound in noise.bounds:
            name = bound.situation + suffix
            known[name] = msgspec.structs.replace(bound, situation=name)
        self.record.noise = list(known.values())

    def ran(self, differential: Differential, pending: Pending) -> None:
        """A plan ran on the target."""
        record = self.record
        record.steps += len(pending.ours.steps)
        for operation in pending.plan.operations[: len(pending.ours.steps)]:
            record.exercised[kind(operation)] = record.exercised.get(kind(operation), 0) + 1
        tally(record.coverage, pending.plan, pending.ours)
        record.reuse = Reuse(record.reuse.hits + pending.ours.hits, record.reuse.tokens + pending.ours.reused_tokens)
        self.asked(differential)
        self._told(record)
        if self._clock.elapsed() - self._saved_s > _SAVE_EVERY_S:
            self.save()

    def asked(self, differential: Differential) -> None:
        """Count the requests sent so far, those of triage included."""
        asked, answered = differential.counts.target, differential.reference.requests
        self._doubt = differential.reference.doubt
        self.record.requests = Requests(self._earlier.target + asked, self._earlier.reference + answered)

    def lost(self, lost: list[LostReuse]) -> None:
        """All reuse that was lost so far."""
        self.record.reuse_lost = lost

    def _told(self, record: RunRecord) -> None:
        now, reuse, total = self.now(), record.reuse, record.requests
        thinned(record.series, Sample(now, record.steps, total.target, reuse.hits, reuse.tokens))
        self._sink(events.Explored(now, record.steps, total.target, total.reference, reuse.hits, reuse.tokens))
        self.tell_notices()

    def suspected(self, step: int, oracle: str, delta: float | None) -> None:
        """A step diverged."""
        self._sink(events.Suspected(self.now(), step + 1, oracle, delta))

    def found(self, finding: FindingRecord) -> None:
        """A suspect became a finding; a known one where the baseline lists it."""
        reason = self._baseline.reason(finding.id)
        if reason is not None:
            finding = msgspec.structs.replace(finding, known=True, known_reason=reason)
        self.record.findings.append(finding)
        if self.record.time_to_first_finding_s is None:
            self.record.time_to_first_finding_s = finding.found_s
        self._sink(events.Found(self.now(), finding))
        self.save()

    def dropped(self, suspect: SuspectRecord) -> None:
        """A suspect stays one."""
        self.record.suspects.append(suspect)
        self._sink(events.Dropped(self.now(), suspect))

    def rounding(self, delta: float) -> None:
        """A suspect turned out to be rounding."""
        before = self.record.rounding
        self.record.rounding = RoundingRecord(before.suspects + 1, max(before.largest, delta))

    def tell_notices(self) -> None:
        """Tell what befell the servers meanwhile."""
        while not self._rig.notices.empty():
            match self._rig.notices.get():
                case Mishap(why=why, explained=explained):
                    self._sink(events.Restarted(self.now(), why))
                    self._unexplained += [] if explained else [why]
                case Sighting(why=why):
                    self._sink(events.Shared(self.now(), why))
        self.record.others = self._rig.others_record()

    def conclude(self, *reasons: str) -> None:
        """The run is over."""
        self.tell_notices()
        record = self.record
        doubts = [self._doubt] if self._doubt is not None else []
        record.reasons = [*reasons, *self._unseen, *self._unexplained, *doubts, *_open_questions(record)]
        record.verdict = _verdict(record)
        self._settle_baseline()
        self._settle_operations()
        self._sink(events.Finished(self.now(), record.verdict, record.reasons))
        self.save()

    def fixed(self, finding: str) -> None:
        """The plan of a finding of the baseline ran and nothing was wrong."""
        if self._baseline.reason(finding) is not None:
            self.record.baseline_fixed.append(finding)

    def _settle_operations(self) -> None:
        record = self.record
        if record.target is not None:
            kept = {what: why for what, why in record.not_exercised.items() if what not in KINDS}
            record.not_exercised = kept | left_out(record.exercised, record.target.capabilities.operations)

    def _settle_baseline(self) -> None:
        record = self.record
        met = {finding.id for finding in record.findings}
        record.baseline_fixed = [name for name in dict.fromkeys(record.baseline_fixed) if name not in met]
        accounted = met | set(record.baseline_fixed)
        record.baseline_unseen = [known.id for known in self._baseline.known if known.id not in accounted]

    def save(self) -> None:
        """Write the record as it is now."""
        self._saved_s = self._clock.elapsed()
        self.record.elapsed_s = self.now()
        self._save(self.record)


def _verdict(record: RunRecord) -> Verdict:
    if any(not finding.known for finding in record.findings):
        return Verdict.FINDING
    return Verdict.INCONCLUSIVE if record.reasons else Verdict.CLEAN


def _open_questions(record: RunRecord) -> list[str]:
    questions = [f"suspect left unconfirmed: {suspect.reason}" for suspect in record.suspects]
    if record.target is not None and record.reuse.hits == 0:
        questions.append(_nothing_reused(record))
    return list(dict.fromkeys(questions))


def _nothing_reused(record: RunRecord) -> str:
    if record.steps == 0:
        return "no plan was run, so nothing was tested; give it more --time"
    return (
        f"no request of {record.steps} ever reused anything, so nothing was tested; is the server's cache switched off?"
    )
