"""From a suspect to a finding, or to a suspect with the reason why it is none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from fuzzer.calibration import CEILING, Numerics, recalibrate
from fuzzer.differential import Differential, Outcome
from fuzzer.servers.protocol import Server
from fuzzer.triage import kinds, wording
from fuzzer.triage.account import answer_of, situation_of, unreduced, wire_alone, wire_of, with_texts
from fuzzer.triage.confirm import Confirmation, Noisy, confirm
from fuzzer.triage.explain import Explanation, explain, mitigations
from fuzzer.triage.lab import Lab
from fuzzer.triage.paired import PAIRED, run_pairs
from fuzzer.triage.reduce import Reduction
from oracles.arms import own_spelling
from oracles.attribution import fingerprint
from oracles.comparison import lead, preference
from oracles.divergence import jensen_shannon
from oracles.evidence import Verdict, decide, reuse_witnessed
from oracles.judgement import Oracle, Suspect, judge
from oracles.noise import Noise
from oracles.observations import Failure, Observation, Step, TokenLogprob
from oracles.sequential import FALSE_ALARMS, alpha_of
from oracles.sequential import Outcome as Pairs
from reports.record import (
    Divergence,
    FindingRecord,
    Mitigation,
    Settings,
    SourceRecord,
    StepRecord,
    SuspectRecord,
    Token,
)
from reports.severity import severity_of
from scenarios.environment import adapter_letter
from scenarios.plans import Plan, joined
from scenarios.story import story_lines

_TOP = 8
_TIMING_RUNS = 4
_SPARES = 2
"""Servers started ahead while plans are reduced on fresh ones: a start takes far longer than a plan."""
_HISTORY_STEPS = (0, 1, 8, 64, 2000)


class Duplicate(msgspec.Struct, frozen=True):
    """A suspect that reduced to a finding already made."""

    id: str


class Minimal(msgspec.Struct, frozen=True):
    """A reduced plan, with the run that shows it."""

    outcome: Outcome
    wrong: int
    complete: bool
    requests: int
    """Sent to targets while reducing."""

    @property
    def plan(self) -> Plan:
        """The reduced plan."""
        return self.outcome.plan


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What a finding says about the run that it came from."""

    engine: str
    scenario: str
    settings: Settings
    seed: int
    switches: dict[str, tuple[str, ...]]
    suspected_s: float | None = None


class Rounding(msgspec.Struct, frozen=True):
    """A suspect that legal computation in the same shapes explains; the bounds were widened by what was seen."""


class Triage:
    """Investigates suspects on one target; ``known`` are the fingerprints of the findings made so far."""

    def __init__(
        self,
        lab: Lab,
        numerics: Numerics,
        known: Collection[str],
        *,
        out_of_time: Callable[[], bool],
        elapsed: Callable[[], float],
    ) -> None:
        self._lab = lab
        self._known = known
        self._paired = 0
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

    def investigate(self, outcome: Outcome, case: Case) -> FindingRecord | SuspectRecord | Duplicate | Rounding:
        """Reduce, explain, confirm."""
        if self._is_rounding(outcome):
            return Rounding()
        minimal = self._reduce(outcome)
        if isinstance(minimal, Rounding):
            return minimal
        if minimal is None:
            return _unconfirmed(outcome, outcome.suspects[0], "did not come back on fresh roots or a fresh server")
        suspect = minimal.outcome.suspects[0]
        if self._out_of_time():
            return _unconfirmed(minimal.outcome, suspect, "time was up before it could be confirmed")
        self._lab.expect(2)
        why = explain(self._lab.live, minimal.plan, minimal.wrong, minimal.outcome)
        name = fingerprint(case.engine, _family(suspect.oracle), why.necessary)
        if name in self._known:
            return Duplicate(name)
        return self._confirm(name, minimal, why, outcome, case)

    def _confirm(
        self, name: str, minimal: Minimal, why: Explanation, original: Outcome, case: Case
    ) -> FindingRecord | SuspectRecord | Rounding:
        confirmation = confirm(self._lab, minimal.plan, minimal.wrong, minimal.outcome, self._pairs())
        decision = decide(confirmation.evidence)
        if decision.verdict is Verdict.CLEAN:
            return Rounding()
        if decision.verdict is not Verdict.FINDING:
            return _unconfirmed(minimal.outcome, confirmation.suspect, decision.reason)
        helps = mitigations(self._lab, minimal.plan, minimal.wrong, case.switches)
        server = self._lab.live.target.server
        finding = _finding(name, minimal, why, confirmation, helps, original, case, self._elapsed(), server)
        return with_texts(finding, server)

    @property
    def _noisy(self) -> bool:
        """Whether the target computes less exactly than exact numerics do, so that a bound alone decides nothing."""
        return self._numerics is not Numerics.EXACT or self.noise.largest > CEILING[Numerics.EXACT]

    def _pairs(self) -> Noisy | None:
        """How to run pairs, on a target with noise; each suspect spends less than the one before."""
        if not self._noisy:
            return None
        self._paired += 1
        return Noisy(alpha_of(self._paired), self._out_of_time)

    def _is_rounding(self, outcome: Outcome) -> bool:
        """Whether a small difference is within what the same shapes give lawfully."""
        suspect, live = outcome.suspects[0], self._lab.live
        if suspect.delta is None or suspect.delta > CEILING[self._numerics]:
            return False
        live.noise = recalibrate(live, outcome.plan, suspect.step)
        return not judge(outcome.ours, outcome.theirs, live.noise, accounting=live.accounts)

    def _reduce(self, outcome: Outcome) -> Minimal | Rounding | None:
        live = self._lab.live
        oracle = outcome.suspects[0].oracle
        history = live.before(outcome.plan)
        again = _run(live, outcome.plan, oracle)
        if _wrong_step(again, oracle) is None:
            return Rounding() if self._is_noise(outcome) else self._reduce_with_history(outcome, history, oracle)
        minimal = self._reduced_on(lambda plan: _run(live, plan, oracle), again, oracle)
        if minimal is None or minimal.plan.overlaps or self._out_of_time() or self._comes_back(minimal, oracle):
            return minimal
        # On the live target it needed what earlier plans had left there.
        return self._reduce_with_history(outcome, history, oracle) or minimal

    def _comes_back(self, minimal: Minimal, oracle: Oracle) -> bool:
        """Whether a plan that was reduced on the live target shows the same on a fresh one."""
        return not self._lab.has_fresh or _wrong_step(self._run_fresh(minimal.plan), oracle) is not None

    def _is_noise(self, outcome: Outcome) -> bool:
        """Whether a difference that did not come back is no larger than its control arm's, pair by pair."""
        suspect = outcome.suspects[0]
        if not self._noisy or suspect.oracle not in PAIRED:
            return False
        pairs = run_pairs(self._lab.live, outcome.plan, suspect.step, suspect.reused, FALSE_ALARMS, self._out_of_time)
        return pairs.outcome(FALSE_ALARMS) is Pairs.NOISE

    def _reduce_with_history(self, outcome: Outcome, history: list[Plan], oracle: Oracle) -> Minimal | None:
        """A plan that fails only after the plans before it: replay those on a fresh server and reduce all of it."""
        for count in _HISTORY_STEPS:
            if self._out_of_time() or not self._lab.has_fresh:
                return None
            earlier = history[-count:] if count else []
            again = self._run_fresh(joined([*earlier, outcome.plan]) if earlier else outcome.plan)
            if _wrong_step(again, oracle) is not None:
                return self._reduced_on(self._run_fresh, again, oracle)
            if count >= len(history):
                return None
        return None

    def _reduced_on(self, run: Callable[[Plan], Outcome], outcome: Outcome, oracle: Oracle) -> Minimal | None:
        last = outcome
        sent = self.live.counts.target

        def shows(plan: Plan) -> int | None:
            nonlocal last
            attempt = run(plan)
            step = _wrong_step(attempt, oracle)
            if step is not None:
                last = attempt
            return step

        reduction = Reduction(shows, out_of_time=self._out_of_time)
        plan = reduction.reduce(outcome.plan)
        if last.plan != plan:
            last = run(plan)
        wrong = _wrong_step(last, oracle)
        return None if wrong is None else Minimal(last, wrong, reduction.complete, self.live.counts.target - sent)

    def _run_fresh(self, plan: Plan) -> Outcome:
        self._lab.expect(_SPARES)
        with self._lab.fresh() as fresh:
            return fresh.run(plan)


def _run(live: Differential, plan: Plan, oracle: Oracle) -> Outcome:
    """Run a plan; where timing decides, several times: it shows what it shows in at least half of the runs."""
    outcome = live.run(plan)
    if not plan.overlaps:
        return outcome
    outcomes = [outcome, *(live.run(plan) for _ in range(_TIMING_RUNS - 1))]
    showing = [one for one in outcomes if _wrong_step(one, oracle) is not None]
    silent = [one for one in outcomes if _wrong_step(one, oracle) is None]
    return showing[0] if 2 * len(showing) >= _TIMING_RUNS else silent[0]


def _family(oracle: Oracle) -> str:
    return oracle if oracle in (Oracle.HEALTH, Oracle.ACCOUNTING) else "answer"


def _wrong_step(outcome: Outcome, oracle: Oracle) -> int | None:
    """The first step that is wrong in the way of ``oracle``; a flipped token and a moved logprob are one way."""
    return next((one.step for one in outcome.suspects if _family(one.oracle) == _family(oracle)), None)


def _unconfirmed(outcome: Outcome, suspect: Suspect, reason: str) -> SuspectRecord:
    reason = f"{suspect.reason}; {reason}" if suspect.reason else reason
    return SuspectRecord(
        oracle=suspect.oracle,
        step=suspect.step + 1,
        delta=suspect.delta,
        bound=suspect.bound,
        reason=reason,
        plan=outcome.plan.operations,
        story=story_lines(outcome.plan),
    )


def _finding(
    name: str,
    minimal: Minimal,
    why: Explanation,
    confirmation: Confirmation,
    helps: tuple[Mitigation, ...],
    original: Outcome,
    case: Case,
    found_s: float,
    server: Server,
) -> FindingRecord:
    plan, wrong, suspect, evidence = minimal.plan, minimal.wrong, confirmation.suspect, confirmation.evidence
    divergence = _divergence(confirmation, wrong)
    bypass = (Mitigation(server.capabilities.bypass_how, evidence.bypass.clean),) if evidence.bypass is not None else ()
    helps = (*bypass, *helps)
    return FindingRecord(
        id=name,
        title=kinds.title_of(suspect.oracle, why.necessary, suspect.reused),
        kind=kinds.kind_of(suspect.oracle, why.necessary, suspect.reused),
        oracle=suspect.oracle,
        scenario=case.scenario,
        prologue=plan.prologue,
        plan=plan.operations,
        operations=len(plan.operations),
        wrong=wrong + 1,
        story=wording.story_of(plan, confirmation.witness.ours, wrong, suspect, adapters=_spelled_adapters(server)),
        explanation=[
            *wording.explanation_of(plan, wrong, why, helps),
            *wording.last_words(confirmation.witness.ours.failure),
        ],
        steps=[_step_record(step) for step in confirmation.witness.ours.steps],
        divergence=divergence,
        settings=case.settings,
        severity=severity_of(suspect.oracle, divergence, suspect.delta),
        suspected_s=case.suspected_s,
        answer=answer_of(confirmation.witness, wrong),
        unreduced=unreduced(original),
        ablations=list(why.ablations),
        situation=situation_of(confirmation.witness.ours, wrong),
        wire=wire_of(server, confirmation.witness, wrong),
        wire_alone=wire_alone(server, confirmation.witness, wrong, spelled=suspect.oracle is Oracle.METAMORPHIC),
        reproduced=evidence.repeats,
        alone=evidence.alone,
        control=evidence.control or evidence.alone,
        bypass=evidence.bypass,
        respelled=evidence.respelled,
        reuse_witnessed=reuse_witnessed(evidence),
        max_abs_logprob_delta=suspect.delta,
        bound=suspect.bound,
        necessary=list(why.necessary),
        stale_source=_source_record(plan, why),
        mitigations=list(helps),
        minimal=minimal.complete,
        reducing_requests=minimal.requests,
        original=original.plan.operations,
        found_s=round(found_s, 3),
        seed=case.seed,
    )


def _spelled_adapters(server: Server) -> int:
    """Adapters that a request may name or not; where it can only name one, to name none is plain speech."""
    return server.capabilities.adapters if server.capabilities.request_scales else 0


def _source_record(plan: Plan, why: Explanation) -> SourceRecord | None:
    if why.source is None:
        return None
    scales = own_spelling(plan, why.source.step).scales or ()
    return SourceRecord(why.source.step + 1, {adapter_letter(scale.adapter): scale.scale for scale in scales})


def _step_record(step: Step) -> StepRecord:
    if not isinstance(step.outcome, Observation):
        reason = step.outcome.reason if isinstance(step.outcome, Failure) else None
        return StepRecord(None, None, len(step.prompt), [], error=reason)
    answer = step.outcome
    return StepRecord(answer.reused, answer.computed, len(step.prompt), list(answer.tokens), answer.slot, answer.ms)


def _divergence(confirmation: Confirmation, wrong: int) -> Divergence | None:
    ours = confirmation.witness.ours.steps[wrong].outcome
    theirs = confirmation.witness.theirs.steps[wrong].outcome
    at = confirmation.suspect.position
    if not isinstance(ours, Observation) or not isinstance(theirs, Observation):
        return None
    gap = preference(theirs.positions[at], ours.positions[at].token)
    mine, other = ours.positions[at].top, theirs.positions[at].top
    shown = {entry.id for entry in (*mine[:_TOP], *other[:_TOP])}
    return Divergence(
        at, _top(mine, shown), _top(other, shown), gap, lead(theirs.positions[at]), jensen_shannon(mine, other)
    )


def _top(entries: Sequence[TokenLogprob], shown: set[int]) -> list[Token]:
    """The entries of a top-k list that are likely on either side."""
    return [Token(entry.id, entry.logprob) for entry in entries if entry.id in shown]
