"""From a suspect to a finding, or to a suspect with the reason why it is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from fuzzer.differential import Outcome
from fuzzer.servers.protocol import Server
from fuzzer.triage import wording
from fuzzer.triage.account import answer_of, unreduced, wire_alone, wire_of, with_texts
from fuzzer.triage.confirm import Confirmation, confirm
from fuzzer.triage.explain import Explanation, explain, mitigations
from fuzzer.triage.lab import Lab
from fuzzer.triage.reduce import Reduction
from oracles.attribution import fingerprint
from oracles.comparison import preference
from oracles.evidence import Arm, Verdict, decide, reuse_witnessed
from oracles.judgement import Oracle, Suspect
from oracles.observations import Observation, Step, TokenLogprob
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
_HISTORY_STEPS = (1, 8, 64, 2000)


class Duplicate(msgspec.Struct, frozen=True):
    """A suspect that reduced to a finding already made."""

    id: str


class Minimal(msgspec.Struct, frozen=True):
    """A reduced plan, with the run that shows it."""

    outcome: Outcome
    wrong: int
    complete: bool

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


class Triage:
    """Investigates suspects of one run; knows the findings made so far by their fingerprint."""

    def __init__(
        self,
        lab: Lab,
        *,
        out_of_time: Callable[[], bool],
        elapsed: Callable[[], float],
        known: Iterable[str] = (),
    ) -> None:
        self._lab = lab
        self._out_of_time = out_of_time
        self._elapsed = elapsed
        self._known = set(known)

    def investigate(self, outcome: Outcome, case: Case) -> FindingRecord | SuspectRecord | Duplicate:
        """Reduce, explain, confirm."""
        minimal = self._reduce(outcome)
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
    ) -> FindingRecord | SuspectRecord:
        confirmation = confirm(self._lab, minimal.plan, minimal.wrong, minimal.outcome)
        decision = decide(confirmation.evidence)
        if decision.verdict is not Verdict.FINDING:
            return _unconfirmed(minimal.outcome, confirmation.suspect, decision.reason)
        self._known.add(name)
        helps = mitigations(self._lab, minimal.plan, minimal.wrong, case.switches)
        server = self._lab.live.target.server
        finding = _finding(name, minimal, why, confirmation, helps, original, case, self._elapsed(), server)
        return with_texts(finding, server)

    def _reduce(self, outcome: Outcome) -> Minimal | None:
        live = self._lab.live
        oracle = outcome.suspects[0].oracle
        again = live.run(outcome.plan)
        if _wrong_step(again, oracle) is not None:
            return self._reduced_on(lambda plan: live.run(plan), again, oracle)
        return self._reduce_with_history(outcome, oracle)

    def _reduce_with_history(self, outcome: Outcome, oracle: Oracle) -> Minimal | None:
        """A plan that fails only after the plans before it: replay those on a fresh server and reduce all of it."""
        history = self._lab.live.before(outcome.plan)
        for count in _HISTORY_STEPS:
            if self._out_of_time() or not self._lab.has_fresh:
                return None
            again = self._run_fresh(joined([*history[-count:], outcome.plan]))
            if _wrong_step(again, oracle) is not None:
                return self._reduced_on(self._run_fresh, again, oracle)
            if count >= len(history):
                return None
        return None

    def _reduced_on(self, run: Callable[[Plan], Outcome], outcome: Outcome, oracle: Oracle) -> Minimal | None:
        last = outcome

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
        return None if wrong is None else Minimal(last, wrong, reduction.complete)

    def _run_fresh(self, plan: Plan) -> Outcome:
        with self._lab.fresh() as fresh:
            return fresh.run(plan)


def _family(oracle: Oracle) -> str:
    return "health" if oracle is Oracle.HEALTH else "answer"


def _wrong_step(outcome: Outcome, oracle: Oracle) -> int | None:
    """The first step that is wrong in the way of ``oracle``; a flipped token and a moved logprob are one way."""
    return next((one.step for one in outcome.suspects if _family(one.oracle) == _family(oracle)), None)


def _unconfirmed(outcome: Outcome, suspect: Suspect, reason: str) -> SuspectRecord:
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
    bypass = (Mitigation("cache_prompt:false", evidence.bypass.clean),) if evidence.bypass is not None else ()
    helps = (*bypass, *helps)
    return FindingRecord(
        id=name,
        title=wording.title_of(suspect.oracle, why.necessary, suspect.reused),
        kind=wording.kind_of(suspect.oracle, why.necessary, suspect.reused),
        oracle=suspect.oracle,
        scenario=case.scenario,
        prologue=plan.prologue,
        plan=plan.operations,
        operations=len(plan.operations),
        wrong=wrong + 1,
        story=wording.story_of(plan, confirmation.witness.ours, wrong, suspect),
        explanation=wording.explanation_of(plan, wrong, why, helps),
        steps=[_step_record(step) for step in confirmation.witness.ours.steps],
        divergence=divergence,
        settings=case.settings,
        severity=severity_of(suspect.oracle, divergence, suspect.delta),
        suspected_s=case.suspected_s,
        answer=answer_of(confirmation.witness, wrong),
        unreduced=unreduced(original),
        ablations=list(why.ablations),
        wire=wire_of(server, confirmation.witness),
        wire_alone=wire_alone(server, confirmation.witness, wrong),
        reproduced=evidence.repeats,
        alone=evidence.alone,
        control=evidence.control or Arm(True),
        bypass=evidence.bypass,
        reuse_witnessed=reuse_witnessed(evidence),
        max_abs_logprob_delta=suspect.delta,
        bound=suspect.bound,
        necessary=list(why.necessary),
        stale_source=_source_record(plan, why),
        mitigations=list(helps),
        minimal=minimal.complete,
        original=original.plan.operations,
        found_s=round(found_s, 3),
        seed=case.seed,
    )


def _source_record(plan: Plan, why: Explanation) -> SourceRecord | None:
    if why.source is None:
        return None
    scales = plan.operations[why.source.step].scales
    return SourceRecord(why.source.step + 1, {adapter_letter(scale.adapter): scale.scale for scale in scales})


def _step_record(step: Step) -> StepRecord:
    if not isinstance(step.outcome, Observation):
        return StepRecord(None, None, len(step.prompt), [], error=step.outcome.reason)
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
    return Divergence(at, _top(mine, shown), _top(other, shown), gap)


def _top(entries: Sequence[TokenLogprob], shown: set[int]) -> list[Token]:
    """The entries of a top-k list that are likely on either side."""
    return [Token(entry.id, entry.logprob) for entry in entries if entry.id in shown]
