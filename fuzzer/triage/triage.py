"""From a suspect to a finding, or to a suspect with the reason why it is none."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import msgspec

from fuzzer.calibration import CEILING, Numerics, recalibrate
from fuzzer.differential import Differential, Outcome
from fuzzer.triage.account import with_texts
from fuzzer.triage.confirm import Confirmation, Noisy, confirm
from fuzzer.triage.explain import Explanation, explain, mitigations
from fuzzer.triage.findings import Case, finding_of, spelled_adapters, unconfirmed
from fuzzer.triage.lab import Lab
from fuzzer.triage.minimise import Minimal, Recurrence, after_history, on_both, on_fresh, on_live
from fuzzer.triage.paired import PAIRED, run_pairs
from fuzzer.triage.trials import Run, Trials, family
from oracles.arms import control_arm
from oracles.attribution import fingerprint
from oracles.evidence import BEYOND, Verdict, could_be_rounding, decide
from oracles.judgement import Oracle, Suspect, judge
from oracles.noise import Noise
from oracles.sequential import FALSE_ALARMS, Allowance
from oracles.sequential import Outcome as Pairs
from reports.record import (
    FindingRecord,
    SuspectRecord,
)
from scenarios.plans import Plan


class Duplicate(msgspec.Struct, frozen=True):
    """A suspect that reduced to a finding already made."""

    id: str


class Rounding(msgspec.Struct, frozen=True):
    """A suspect that legal computation in the same shapes explains; the bounds were widened by what was seen."""


class Foreign(msgspec.Struct, frozen=True):
    """A hit on what somebody else, or an earlier run, had left in a server that is not ours."""


Result = FindingRecord | SuspectRecord | Duplicate | Rounding | Foreign


class _TimeIsUpError(Exception):
    """Leaves an explanation that could not be confirmed any more."""


class _Named(msgspec.Struct, frozen=True):
    """A reduced plan with the bug that it shows."""

    id: str
    minimal: Minimal
    why: Explanation


class Triage:
    """Investigates suspects on one target; ``known`` are the fingerprints of the findings made so far.

    ``allowance`` is that of the whole run, which all its targets spend from.
    """

    def __init__(
        self,
        lab: Lab,
        numerics: Numerics,
        known: Collection[str],
        *,
        out_of_time: Callable[[], bool],
        elapsed: Callable[[], float],
        allowance: Allowance | None = None,
    ) -> None:
        self._lab = lab
        self._known = known
        self._allowance = allowance or Allowance()
        self._numerics = numerics
        self._out_of_time = out_of_time
        self._elapsed = elapsed

    @property
    def live(self) -> Differential:
        """The comparison on the target that the campaign runs on."""
        return self._lab.live

    @property
    def noise(self) -> Noise:
        """The bounds, as far as they are known by now."""
        return self.live.noise

    def investigate(self, outcome: Outcome, case: Case) -> Result:
        """Reduce, explain, confirm; the live target starts afresh after anything but rounding."""
        result = Rounding() if self._is_rounding(outcome) else self._investigated(outcome, case)
        if isinstance(result, SuspectRecord) and self._is_foreign(outcome) and not self._out_of_time():
            self._lab.live.target.company.met_earlier()
            return Foreign()
        if self._lab.has_fresh and not isinstance(result, Rounding):
            # What this plan, or one before it, left in the server would be blamed on every later one.
            self._lab.live.target.restart()
        return result

    def _investigated(self, outcome: Outcome, case: Case) -> Result:
        history = self._lab.live.before(outcome.plan)
        least = self._least(outcome.suspects[0])
        again = on_live(self._lab, outcome, self._out_of_time, least)
        if (again is None or again.trials.rare) and self._is_noise(outcome):
            return Rounding()
        known = self._outlined(again, case)
        if known is not None:
            return known
        if again is None or not self._comes_back_fresh(again):
            again = after_history(self._lab, outcome, history, self._out_of_time, least)
            known = self._outlined(again, case)
        if again is None:
            return unconfirmed(outcome, outcome.suspects[0], "did not come back on fresh roots or a fresh server")
        result = known or self._followed(again, outcome, case)
        if isinstance(result, Rounding) and self._is_unreached(outcome.suspects[0]):
            return unconfirmed(
                outcome, outcome.suspects[0], "what came back of it is rounding, which it is too large for"
            )
        return result

    def _comes_back_fresh(self, again: Recurrence) -> bool:
        """Whether what comes back on the live target does so on a fresh one."""
        return not self._lab.has_fresh or again.shown_by(partial(on_fresh, self._lab))

    def _outlined(self, again: Recurrence | None, case: Case) -> Duplicate | None:
        """What is met again and again costs no more than it takes to know it."""
        if again is None or not self._known:
            return None
        named = self._named(again, again.outline(), case)
        return Duplicate(named.id) if named is not None and named.id in self._known else None

    def _followed(self, again: Recurrence, outcome: Outcome, case: Case) -> Result:
        minimal = again.minimal()
        if minimal is None:
            return unconfirmed(outcome, outcome.suspects[0], "did not come back once it was reduced")
        named = self._named(again, minimal, case)
        if named is None or self._out_of_time():
            suspect = minimal.outcome.suspects[0]
            return unconfirmed(minimal.outcome, suspect, "time was up before it could be confirmed")
        if named.id in self._known:
            return Duplicate(named.id)
        self._lab.expect(2)
        confirmation = confirm(
            self._lab, minimal.plan, minimal.wrong, minimal.outcome, again.trials, self._pairs(), self._out_of_time
        )
        if self._needs_what_was_left(again, confirmation):
            # Operations were taken away that what earlier plans left in the slots stood in for.
            return self._followed(again.from_the_start(partial(on_both, self._lab)), outcome, case)
        return self._decided(named, confirmation, again.trials, outcome, case)

    def _needs_what_was_left(self, again: Recurrence, confirmation: Confirmation) -> bool:
        """Whether a plan that was reduced on the live target shows nothing on a fresh one, as it did before."""
        never = confirmation.evidence.repeats.k == 0 and not confirmation.evidence.timing
        return never and self._lab.has_fresh and not again.fresh

    def _named(self, again: Recurrence, minimal: Minimal | None, case: Case) -> _Named | None:
        """The bug that a reduced plan shows; None where there is no such plan, or no time left to say."""
        if minimal is None:
            return None
        server = self._lab.live.target.server
        adapters, slots = spelled_adapters(server), server.capabilities.slots
        plan, wrong = minimal.plan, minimal.wrong
        run = self._in_time(again.run)
        try:
            why = explain(run, plan, wrong, minimal.outcome, again.trials, spelled_adapters=adapters, slots=slots)
        except _TimeIsUpError:
            return None
        oracle = minimal.outcome.suspects[0].oracle
        return _Named(fingerprint(case.engine, family(oracle), why.identity), minimal, why)

    def _in_time(self, run: Run) -> Run:
        """Runs plans until time is up: where timing decides, an explanation takes a hundred of them."""

        def in_time(plan: Plan) -> Outcome:
            if self._out_of_time():
                raise _TimeIsUpError
            return run(plan)

        return in_time

    def _decided(
        self, named: _Named, confirmation: Confirmation, trials: Trials, original: Outcome, case: Case
    ) -> FindingRecord | SuspectRecord | Rounding:
        minimal, why = named.minimal, named.why
        decision = decide(confirmation.evidence)
        if decision.verdict is Verdict.CLEAN:
            return Rounding()
        if decision.verdict is not Verdict.FINDING:
            return unconfirmed(minimal.outcome, confirmation.suspect, decision.reason)
        helps = mitigations(self._lab, minimal.plan, minimal.wrong, case.switches, trials)
        server = self._lab.live.target.server
        finding = finding_of(named.id, minimal, why, confirmation, helps, original, case, self._elapsed(), server)
        return with_texts(finding, server)

    @property
    def _noisy(self) -> bool:
        """Whether the target computes less exactly than exact numerics do, so that a bound alone decides nothing."""
        return self._numerics is not Numerics.EXACT or self.noise.largest > CEILING[Numerics.EXACT]

    def _pairs(self) -> Noisy | None:
        """How to run pairs, on a target with noise; each suspect spends less than the one before."""
        if not self._noisy:
            return None
        return Noisy(self._allowance.take(), self._out_of_time)

    def _is_rounding(self, outcome: Outcome) -> bool:
        """Whether a small difference is within what the same shapes give lawfully."""
        suspect, live = outcome.suspects[0], self._lab.live
        # On a noisy target a bound can be wider than what is usual.
        if suspect.moved is None or suspect.moved > max(CEILING[self._numerics], BEYOND * live.noise.bound()):
            return False
        live.noise = recalibrate(live, outcome.plan, suspect.step)
        left = judge(outcome.ours, outcome.theirs, live.noise, accounting=live.accounts)
        return all(self._could_be_rounding(outcome.plan, one) for one in left)

    def _could_be_rounding(self, plan: Plan, suspect: Suspect) -> bool:
        """Whether no pairs can tell a difference from rounding: the plan has no control arm, and it is small."""
        if not self._noisy or suspect.oracle not in PAIRED or control_arm(plan, suspect.step) is not None:
            return False
        return self._within(1, suspect)

    def _is_foreign(self, outcome: Outcome) -> bool:
        """Whether what did not come back is a hit on a server that others ask too: who left what was hit is unknown."""
        hits_only = all(suspect.oracle is Oracle.ACCOUNTING for suspect in outcome.suspects)
        live = self._lab.live
        return (hits_only and not live.target.ours) or live.may_have_met_others(outcome)

    def _is_noise(self, outcome: Outcome) -> bool:
        """Whether a difference that hardly came back is no larger than its control arm's, pair by pair.

        Where pairs leave that open, what lawful computation moves as far in some shape is not looked into further:
        rounding that is met once in some hundred requests takes half a minute to come back after its history. Pairs
        say nothing of a difference beyond any rounding, which was there once and is not in them.
        """
        suspect = outcome.suspects[0]
        if not self._noisy or suspect.oracle not in PAIRED or self._is_unreached(suspect):
            return False
        pairs = run_pairs(self._lab.live, outcome.plan, suspect.step, suspect.reused, FALSE_ALARMS, self._out_of_time)
        told = pairs.outcome(FALSE_ALARMS)
        return told is Pairs.NOISE or (told is Pairs.UNDECIDED and self._within(1, suspect))

    def _least(self, suspect: Suspect) -> float:
        """What a difference beyond any rounding has to exceed each time, to be the same one."""
        steps = (self.noise.unreached, BEYOND * self.noise.bound())
        return next((step for step in steps if self._noisy and (suspect.moved or 0.0) > step), 0.0)

    def _is_unreached(self, suspect: Suspect) -> bool:
        """Whether rounding comes nowhere near a difference."""
        return suspect.moved is None or suspect.moved > self.noise.unreached

    def _within(self, times: float, suspect: Suspect) -> bool:
        """Whether a difference is within so many times what lawful computation gives in any shape."""
        return could_be_rounding(suspect.moved, times * self.noise.bound())
