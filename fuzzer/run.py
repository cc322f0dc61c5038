"""``stalefuzz run``: set up, calibrate, explore, investigate, record."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import msgspec

from fuzzer.baseline import NOTHING as KNOWS_NOTHING
from fuzzer.baseline import Baseline
from fuzzer.bring_up import bring_up, laboratory
from fuzzer.calibrated import calibrated
from fuzzer.campaign import Exploration
from fuzzer.clock import Clock
from fuzzer.corpus import NOTHING as EMPTY
from fuzzer.corpus import Corpus, Entry, lacks_for, still_reuses
from fuzzer.differential import Differential, Outcome, Pending
from fuzzer.errors import CannotJudge, UsageError
from fuzzer.interrupts import Interruption
from fuzzer.ledger import Ledger
from fuzzer.legs import Leg, legs
from fuzzer.lost_reuse import LostReuseWatch
from fuzzer.opening import Opening
from fuzzer.options import RunOptions
from fuzzer.quieting import Quieting
from fuzzer.rig import Rig
from fuzzer.triage.findings import Case
from fuzzer.triage.lab import Lab
from fuzzer.triage.triage import Duplicate, Foreign, Rounding, Triage
from oracles.evidence import Verdict
from oracles.sequential import Allowance
from reports import events
from reports.folder import warm_up
from reports.record import FindingRecord, RunRecord, SuspectRecord
from scenarios.capabilities import Capabilities
from scenarios.library.catalogue import SCENARIOS, by_name
from scenarios.scenario import Scenario

_NEXT_SEED = 104_729
_QUIET = 0.5
"""Share of the legs on a server that is set to keep known bugs away."""


class Given(msgspec.Struct, frozen=True):
    """What a run knows when it begins."""

    baseline: Baseline = KNOWS_NOTHING
    corpus: Corpus = EMPTY
    earlier: RunRecord | None = None
    """The run that this one goes on with."""


class Run:
    """One run; ``record`` is true at any moment, ``sink`` gets the events, ``save`` writes the record."""

    def __init__(
        self,
        options: RunOptions,
        rig: Rig,
        interruption: Interruption,
        sink: events.Sink,
        save: Callable[[RunRecord], None],
        given: Given | None = None,
    ) -> None:
        given = given or Given()
        self._options = options
        self._rig = rig
        self._interruption = interruption
        self._clock = Clock(options.time_s, stopped=lambda: interruption.asked)
        self._corpus = given.corpus
        self.record = _begun(options, given.earlier)
        self._ledger = Ledger(self.record, rig, self._clock, sink, save, given.baseline)
        self._known = [finding.necessary for finding in self.record.findings]
        self._allowance = Allowance()
        self._ids = {finding.id for finding in self.record.findings}
        self._quieting = Quieting(rig.switches if rig.takes_settings else {})
        self._opening = Opening()
        self._losses = LostReuseWatch(out_of_time=self._enough, elapsed=self._ledger.now)

    def execute(self) -> RunRecord:
        """Run to the end; the servers that were started are gone afterwards."""
        try:
            with ExitStack() as stack:
                self._explore(stack)
            self._ledger.conclude()
        except UsageError:
            raise
        except CannotJudge as reason:
            self._ledger.conclude(str(reason))
        return self.record

    def interrupted(self) -> None:
        """Note that the user ended the run; what was found stays."""
        self._ledger.conclude("interrupted")

    def _explore(self, stack: ExitStack) -> None:
        self._ledger.started()
        differential, start_pool = bring_up(self._rig, stack)
        # Measuring rounding leaves this process idle most of the time.
        warm_up()
        self._interruption.check()
        self._ledger.calibrated(calibrated(differential, self._rig, self._interruption.check))
        able, special = self._scenarios(differential)
        self._replay_corpus(differential, start_pool)
        for leg in legs(able, self._seed, can_start=self._rig.takes_settings, special=special):
            if self._enough() or self._found_enough():
                break
            self._run_leg(self._quieted(leg), differential, start_pool)
            self._interruption.check()
        differential.target.company.count()

    @property
    def _seed(self) -> int:
        """Decides the plans; a resumed run draws others than before."""
        return self.record.seed + self.record.resumed * _NEXT_SEED

    def _replay_corpus(self, differential: Differential, start_pool: ThreadPoolExecutor) -> None:
        """The plans that are known to be worth it, before any new one."""
        leg = Leg(self._seed, (), None, ())
        with ExitStack() as stack:
            triage = self._triage(laboratory(self._rig, differential, start_pool, stack))
            for entry in self._corpus.entries:
                if self._enough() or self._found_enough():
                    return
                self._replay(entry, differential, leg, triage)

    def _replay(self, entry: Entry, differential: Differential, leg: Leg, triage: Triage) -> None:
        lacks = lacks_for(entry, differential.target.server.capabilities)
        if lacks is not None:
            self.record.not_exercised[entry.path.name] = lacks
            return
        pending = differential.begin(entry.plan)
        self._ledger.ran(differential, pending)
        outcome = pending.outcome()
        if outcome.suspects:
            self._investigate(leg, triage, outcome, entry.scenario)
        elif entry.finding and still_reuses(differential, entry):
            self._ledger.fixed(entry.finding)

    def _triage(self, lab: Lab) -> Triage:
        return Triage(
            lab,
            self._rig.numerics,
            self._ids,
            out_of_time=self._clock.over,
            elapsed=self._ledger.now,
            allowance=self._allowance,
        )

    def _quieted(self, leg: Leg) -> Leg:
        """The leg on a server that keeps the known bugs away which its plans cannot avoid; every other leg or so.

        A switch keeps away more than the bug that it is meant for.
        """
        rng = random.Random(leg.seed)
        flags = self._quieting.flags(self.record.findings, rng) if rng.random() < _QUIET else ()
        return msgspec.structs.replace(leg, setting=leg.setting + flags)

    def _run_leg(self, leg: Leg, first: Differential, start_pool: ThreadPoolExecutor) -> None:
        with ExitStack() as stack:
            differential = self._with_setting(leg, first, stack)
            if differential is None:
                return
            self._hunt(leg, differential, laboratory(self._rig, differential, start_pool, stack, leg.setting))

    def _with_setting(self, leg: Leg, first: Differential, stack: ExitStack) -> Differential | None:
        """The comparison against a target with the leg's setting, the first one for the default; None if it is useless.

        With some settings nothing is ever reused, and a leg would test nothing.
        """
        if not leg.setting:
            first.noise = self._ledger.as_seen(first.noise)
            return first
        target = self._rig.start_fresh(setting=leg.setting)
        stack.callback(target.close)
        differential = first.on(target)
        calibration = calibrated(differential, self._rig, self._interruption.check, leg.setting)
        if calibration.hits == 0:
            self._quieting.useless(leg.setting)
            return None
        self._ledger.measured(differential.noise, leg.setting)
        differential.noise = self._ledger.as_seen(differential.noise)
        return differential

    def _hunt(self, leg: Leg, differential: Differential, lab: Lab) -> None:
        scenarios = [one for one in leg.scenarios if one.missing(differential.target.server.capabilities) is None]
        if not scenarios:
            return
        exploration = Exploration(
            differential,
            scenarios,
            leg.seed,
            self._known,
            enough=self._enough,
            ran=partial(self._ran, differential, leg),
            opening=self._opening,
        )
        triage = self._triage(lab)
        loud = self._quieting.loud(self.record.findings)
        while (suspected := exploration.next_suspect(leg.rounds)) is not None:
            self._investigate(leg, triage, suspected[0], suspected[1].name)
            self._ledger.tell_notices()
            if self._found_enough() or self._quieting.loud(self.record.findings) != loud:
                break

    def _ran(self, differential: Differential, leg: Leg, pending: Pending) -> None:
        self._ledger.ran(differential, pending)
        self._losses.look(differential, pending, leg.setting)
        self._ledger.lost(self._losses.kept)

    def _found_enough(self) -> bool:
        return self._options.fail_fast and any(not finding.known for finding in self.record.findings)

    def _scenarios(self, differential: Differential) -> tuple[list[Scenario], list[Scenario]]:
        """The scenarios asked for, or all but the controls: what this server can run, and what it can when set so."""
        capabilities = differential.target.server.capabilities
        asked = [scenario for name in self._options.scenarios if (scenario := by_name(name)) is not None]
        chosen = asked or [scenario for scenario in SCENARIOS if not scenario.control]
        lacking = {scenario.name: lacks for scenario in chosen if (lacks := scenario.missing(capabilities)) is not None}
        special = [one for one in chosen if one.name in lacking and self._helped(one, capabilities)]
        self.record.not_exercised |= {name: why for name, why in lacking.items() if name not in _names(special)}
        able = [scenario for scenario in chosen if scenario.name not in lacking]
        if not able and not special:
            raise CannotJudge("; ".join(f"{name}: {why}" for name, why in lacking.items()))
        self.record.scenarios = _names([*able, *special])
        return able, special

    def _helped(self, scenario: Scenario, capabilities: Capabilities) -> bool:
        """Whether a server that cannot run a scenario can when it is set so."""
        if () in scenario.settings or not self._rig.takes_settings:
            return False
        able = [{*capabilities.operations, *self._rig.further(setting)} for setting in scenario.settings]
        return any(set(scenario.needs) <= kinds for kinds in able)

    def _investigate(self, leg: Leg, triage: Triage, outcome: Outcome, scenario: str) -> None:
        suspect = outcome.suspects[0]
        self._ledger.suspected(suspect.step, suspect.oracle, suspect.delta)
        case = Case(
            engine=self._rig.engine,
            scenario=scenario,
            settings=self._rig.settings(leg.setting),
            seed=self.record.seed,
            switches=self._rig.switches,
            suspected_s=self._ledger.now(),
        )
        result = triage.investigate(outcome, case)
        self._ledger.asked(triage.live)
        match result:
            case FindingRecord() as finding:
                self._known.append(finding.necessary)
                self._ids.add(finding.id)
                self._ledger.found(finding)
            case SuspectRecord() as unconfirmed:
                self._ledger.dropped(unconfirmed)
            case Rounding():
                self._ledger.rounding(suspect.delta or 0.0)
                self._ledger.measured(triage.noise, leg.setting)
            case Duplicate():
                self._ledger.measured(triage.noise, leg.setting)
            case Foreign():
                pass

    def _enough(self) -> bool:
        most = self._options.max_steps
        return self._clock.over() or (most is not None and self.record.steps >= most)


def _names(scenarios: Sequence[Scenario]) -> list[str]:
    return [scenario.name for scenario in scenarios]


def _begun(options: RunOptions, earlier: RunRecord | None) -> RunRecord:
    """The record of a run that has only begun, or goes on."""
    record = earlier or RunRecord(seed=options.seed)
    record.resumed += earlier is not None
    record.verdict, record.reasons = Verdict.INCONCLUSIVE, ["the run did not get to its end"]
    return record
