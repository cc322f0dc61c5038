"""What triage ends in, as records: a finding with its evidence in words and numbers, or a suspect with the reason."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fuzzer.differential import Outcome
from fuzzer.servers.protocol import Server
from fuzzer.triage import kinds, wording
from fuzzer.triage.account import NotPlain, answer_of, situation_of, unreduced, wire_alone, wire_of
from fuzzer.triage.confirm import Confirmation
from fuzzer.triage.explain import Explanation
from fuzzer.triage.minimise import Minimal
from oracles.arms import own_spelling
from oracles.comparison import lead, preference
from oracles.divergence import jensen_shannon
from oracles.evidence import reuse_witnessed
from oracles.judgement import Oracle, Suspect
from oracles.observations import Failure, Observation, Step, TokenLogprob
from reports.record import (
    Divergence,
    FindingRecord,
    Mitigation,
    Settings,
    SourceRecord,
    StepRecord,
    SuspectRecord,
    Token,
    WireRequest,
)
from reports.severity import severity_of
from scenarios.environment import adapter_letter
from scenarios.plans import Plan
from scenarios.story import story_lines

_TOP = 8


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What a finding says about the run that it came from."""

    engine: str
    scenario: str
    settings: Settings
    seed: int
    switches: dict[str, tuple[str, ...]]
    suspected_s: float | None = None


def unconfirmed(outcome: Outcome, suspect: Suspect, reason: str) -> SuspectRecord:
    """A suspect that is no finding, with the reason."""
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


def finding_of(
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
    """A confirmed divergence with all that a report says of it; ``found_s`` in seconds since the run began."""
    plan, wrong, suspect, evidence = minimal.plan, minimal.wrong, confirmation.suspect, confirmation.evidence
    divergence = _divergence(confirmation, wrong)
    bypass = (Mitigation(server.capabilities.bypass_how, evidence.bypass.clean),) if evidence.bypass is not None else ()
    helps = (*bypass, *helps)
    wire, no_wire = _wire(server, confirmation.witness, wrong)
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
        story=wording.story_of(plan, confirmation.witness.ours, wrong, suspect, adapters=spelled_adapters(server)),
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
        wire=wire,
        no_wire=no_wire,
        wire_alone=wire_alone(server, confirmation.witness, wrong, spelled=suspect.oracle is Oracle.METAMORPHIC),
        reproduced=evidence.repeats,
        alone=evidence.alone,
        control=evidence.control or evidence.alone,
        bypass=evidence.bypass,
        respelled=evidence.respelled,
        reuse_witnessed=reuse_witnessed(evidence),
        reused=suspect.reused,
        reusable=suspect.allowed,
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


def _wire(server: Server, witness: Outcome, wrong: int) -> tuple[list[WireRequest], str]:
    """What a script sends, or why there can be none."""
    try:
        return wire_of(server, witness, wrong), ""
    except NotPlain as reason:
        return [], str(reason)


def spelled_adapters(server: Server) -> int:
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
        return StepRecord(None, None, len(step.prompt), [], error=reason, span=step.span)
    answer = step.outcome
    return StepRecord(
        answer.reused,
        answer.computed,
        len(step.prompt),
        list(answer.tokens),
        answer.slot,
        answer.ms,
        span=step.span,
    )


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
