"""``stalefuzz run``: set up, calibrate, explore, investigate, record."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import msgspec

from fuzzer.baseline import NOTHING as KNOWS_NOTHING
from fuzzer.baseline import Baseline
from fuzzer.calibration import Calibration, calibrate, in_words
from fuzzer.campaign import Exploration
from fuzzer.clock import Clock
from fuzzer.corpus import NOTHING as EMPTY
from fuzzer.corpus import Corpus, lacks_for, still_reuses
from fuzzer.coverage import tally
from fuzzer.differential import Differential, Outcome, Pending
from fuzzer.errors import CannotJudge, UsageError
from fuzzer.options import RunOptions
from fuzzer.rig import Rig
from fuzzer.triage.lab import Lab
from fuzzer.triage.triage import Case, Duplicate, Rounding, Triage
from oracles.evidence import Verdict
from oracles.noise import Noise
from reports import events
from reports.record import FindingRecord, Requests, Reuse, RunRecord, Sample, SuspectRecord
from reports.series import thinned
from scenarios.library.catalogue import SCENARIOS, by_name
from scenarios.operations import kind
from scenarios.scenario import Scenario

_SAVE_EVERY_S = 2.0


class Run:
    """One run; ``record`` is true at any moment, ``sink`` gets the events, ``save`` writes the record."""

    def __init__(
        self,
        options: RunOptions,
        rig: Rig,
        sink: events.Sink,
        save: Callable[[RunRecord], None],
        *,
        baseline: Baseline = KNOWS_NOTHING,
        corpus: Corpus = EMPTY,
        earlier: RunRecord | None = None,
    ) -> None:
        self._options = options
        self._baseline = baseline
        self._corpus = corpus
        self._rig = rig
        self._sink = sink
        self._save = save
        self._clock = Clock(options.time_s)
        self._saved_s = 0.0
        self.record = earlier or RunRecord(seed=options.seed)
        self.record.verdict, self.record.reasons = Verdict.INCONCLUSIVE, ["the run did not get to its end"]
        self._earlier_s = self.record.elapsed_s
        self._before = self.record.requests

    def execute(self) -> RunRecord:
        """Run to the end; the servers that were started are gone afterwards."""
        try:
            with ExitStack() as stack:
                self._explore(stack)
            self._conclude()
        except UsageError:
            raise
        except CannotJudge as reason:
            self._conclude(str(reason))
        return self.record

    def interrupted(self) -> None:
        """Note that the user ended the run; what was found stays."""
        self._conclude("interrupted")

    def _explore(self, stack: ExitStack) -> None:
        self._sink(events.Started(self._now(), self._rig.in_words()))
        self._save_now()
        # Called last: whatever still waits in the pools is answered, or ended, before the servers are.
        stack.callback(self._rig.stop)
        reference_pool = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="reference"))
        start_pool = stack.enter_context(ThreadPoolExecutor(2, thread_name_prefix="start"))
        target, reference = self._rig.start(start_pool)
        stack.callback(reference.close)
        differential = Differential(target, reference, Noise(()), pool=reference_pool)
        self._calibrate(differential)
        lab = Lab(differential, self._rig.start_fresh if self._rig.can_start else None, start_pool)
        stack.callback(lab.close)
        self._hunt(differential, lab)

    def _calibrate(self, differential: Differential) -> None:
        calibration = calibrate(differential, self._rig.numerics)
        differential.noise = calibration.noise
        record = self.record
        record.numerics = self._rig.numerics
        record.target, record.reference = self._rig.target_record(), self._rig.reference_record()
        record.settings = self._rig.settings()
        record.noise = list(calibration.noise.bounds)
        record.not_exercised |= _silent(calibration)
        self._sink(
            events.Probed(
                self._now(), record.target, record.reference, calibration.noise, self._rig.numerics, record.seed
            )
        )

    def _hunt(self, differential: Differential, lab: Lab) -> None:
        scenarios = self._scenarios(differential)
        self.record.scenarios = [scenario.name for scenario in scenarios]
        exploration = Exploration(
            differential,
            scenarios,
            self.record.seed,
            enough=self._enough,
            ran=lambda run: self._ran(differential, run),
            first_round=self.record.rounds,
        )
        found = [finding.id for finding in self.record.findings]
        triage = Triage(lab, self._rig.numerics, out_of_time=self._clock.over, elapsed=self._now, known=found)
        self._replay_corpus(differential, triage)
        while not self._found_enough() and (suspected := exploration.next_suspect()) is not None:
            self.record.rounds = exploration.rounds
            self._investigate(triage, suspected[0], suspected[1].name)
            self._tell_notices()
        self.record.rounds = exploration.rounds

    def _found_enough(self) -> bool:
        return self._options.fail_fast and any(not finding.known for finding in self.record.findings)

    def _replay_corpus(self, differential: Differential, triage: Triage) -> None:
        """The plans that are known to be worth it, before any new one."""
        for entry in self._corpus.entries:
            if self._enough() or self._found_enough():
                return
            lacks = lacks_for(entry, differential.target.server.capabilities)
            if lacks is not None:
                self.record.not_exercised[entry.path.name] = lacks
                continue
            pending = differential.begin(entry.plan)
            self._ran(differential, pending)
            outcome = pending.outcome()
            if outcome.suspects:
                self._investigate(triage, outcome, entry.scenario)
            elif entry.finding in [known.id for known in self._baseline.known] and still_reuses(differential, entry):
                self.record.baseline_fixed.append(entry.finding)

    def _scenarios(self, differential: Differential) -> list[Scenario]:
        """The scenarios asked for, or all that this server can run but the controls."""
        capabilities = differential.target.server.capabilities
        asked = [by_name(name) for name in self._options.scenarios]
        chosen = [scenario for scenario in asked if scenario] or [
            scenario for scenario in SCENARIOS if scenario.reports
        ]
        able: list[Scenario] = []
        for scenario in chosen:
            lacks = scenario.missing(capabilities)
            if lacks is None:
                able.append(scenario)
            else:
                self.record.not_exercised[scenario.name] = lacks
        if able:
            return able
        if self._options.scenarios:
            raise CannotJudge("; ".join(f"{name}: {why}" for name, why in self.record.not_exercised.items()))
        return [scenario for scenario in SCENARIOS if scenario.missing(capabilities) is None]

    def _investigate(self, triage: Triage, outcome: Outcome, scenario: str) -> None:
        suspect = outcome.suspects[0]
        self._sink(events.Suspected(self._now(), suspect.step + 1, suspect.oracle, suspect.delta))
        case = Case(
            engine=self._rig.engine,
            scenario=scenario,
            settings=self._rig.settings(),
            seed=self.record.seed,
            switches=self._rig.switches,
            suspected_s=self._now(),
        )
        match triage.investigate(outcome, case):
            case FindingRecord() as finding:
                self._found(finding)
            case SuspectRecord() as unconfirmed:
                self.record.suspects.append(unconfirmed)
                self._sink(events.Dropped(self._now(), unconfirmed))
            case Duplicate() | Rounding():
                self.record.noise = list(triage.noise.bounds)

    def _found(self, finding: FindingRecord) -> None:
        reason = self._baseline.reason(finding.id)
        if reason is not None:
            finding = msgspec.structs.replace(finding, known=True, known_reason=reason)
        self.record.findings.append(finding)
        if self.record.time_to_first_finding_s is None:
            self.record.time_to_first_finding_s = finding.found_s
        self._sink(events.Found(self._now(), finding))
        self._save_now()

    def _ran(self, differential: Differential, pending: Pending) -> None:
        record = self.record
        record.steps += len(pending.ours.steps)
        for operation in pending.plan.operations[: len(pending.ours.steps)]:
            record.exercised[kind(operation)] = record.exercised.get(kind(operation), 0) + 1
        tally(record.coverage, pending.plan, pending.ours)
        record.reuse = Reuse(record.reuse.hits + pending.ours.hits, record.reuse.tokens + pending.ours.reused_tokens)
        asked, answered = differential.requests, differential.reference.requests
        record.requests = Requests(self._before.target + asked, self._before.reference + answered)
        now, reuse = self._now(), record.reuse
        total = record.requests
        thinned(record.series, Sample(now, record.steps, total.target, reuse.hits, reuse.tokens))
        self._sink(
            events.Explored(now, record.steps, total.target, total.reference, reuse.hits, reuse.tokens),
        )
        self._tell_notices()
        if self._clock.elapsed() - self._saved_s > _SAVE_EVERY_S:
            self._save_now()

    def _tell_notices(self) -> None:
        while not self._rig.notices.empty():
            self._sink(events.Restarted(self._now(), self._rig.notices.get()))

    def _enough(self) -> bool:
        most = self._options.max_steps
        return self._clock.over() or (most is not None and self.record.steps >= most)

    def _conclude(self, *reasons: str) -> None:
        self._tell_notices()
        record = self.record
        record.reasons = [*reasons, *self._open_questions()]
        self._settle_baseline()
        record.verdict = _verdict(record)
        self._sink(events.Finished(self._now(), record.verdict, record.reasons))
        self._save_now()

    def _settle_baseline(self) -> None:
        met = {finding.id for finding in self.record.findings}
        self.record.baseline_fixed = [name for name in self.record.baseline_fixed if name not in met]
        accounted = met | set(self.record.baseline_fixed)
        self.record.baseline_unseen = [known.id for known in self._baseline.known if known.id not in accounted]

    def _open_questions(self) -> list[str]:
        record = self.record
        questions = [f"suspect left unconfirmed: {suspect.reason}" for suspect in record.suspects]
        if record.target is not None and record.reuse.hits == 0:
            questions.append(_nothing_reused(record))
        return list(dict.fromkeys(questions))

    def _save_now(self) -> None:
        self._saved_s = self._clock.elapsed()
        self.record.elapsed_s = self._now()
        self._save(self.record)

    def _now(self) -> float:
        return round(self._earlier_s + self._clock.elapsed(), 3)


def _verdict(record: RunRecord) -> Verdict:
    if any(not finding.known for finding in record.findings):
        return Verdict.FINDING
    return Verdict.INCONCLUSIVE if record.reasons else Verdict.CLEAN


def _nothing_reused(record: RunRecord) -> str:
    if record.steps == 0:
        return "no plan was run, so nothing was tested; give it more --time"
    return (
        f"no request of {record.steps} ever reused anything, so nothing was tested; is the server's cache switched off?"
    )


def _silent(calibration: Calibration) -> dict[str, str]:
    if not calibration.silent_adapters:
        return {}
    return {in_words(calibration.silent_adapters): "moves the logprobs by no more than the bound"}
