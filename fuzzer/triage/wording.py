"""A finding in words: its title, its story line by line, its explanation."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzer.triage.explain import Explanation
from oracles.attribution import Element, StaleSource
from oracles.judgement import Oracle, Suspect
from oracles.observations import Failure, Observation, Trace
from reports.record import Mitigation
from scenarios.operations import Operation, scales_in_words
from scenarios.plans import Plan
from scenarios.story import story_lines


def kind_of(oracle: Oracle, necessary: tuple[Element, ...], reused: int | None) -> str:
    """What kind of bug the necessary elements make; the words of the table of kinds."""
    if oracle is Oracle.HEALTH:
        return "health"
    if not reused:
        return "inherited-state"
    if Element.SETTING_BETWEEN in necessary:
        return "guard-compares-wrong-thing"
    if Element.SCALE_CHANGE in necessary or Element.ADAPTER_CHANGE in necessary:
        return "key-omits-input"
    return "stale-reuse"


def title_of(oracle: Oracle, necessary: tuple[Element, ...], reused: int | None) -> str:
    """One line that says what was not told apart."""
    if oracle is Oracle.HEALTH:
        return "no answer that can be judged"
    if not reused:
        return "state inherited without a cache hit"
    what = _subject(necessary)
    where = "an evicted entry" if Element.REQUEST_BETWEEN in necessary else "a reused prefix"
    return f"{what} of {where}"


def _subject(necessary: tuple[Element, ...]) -> str:
    if Element.SCALE_CHANGE in necessary:
        return "adapter scale"
    return "adapter" if Element.ADAPTER_CHANGE in necessary else "stale state"


def story_of(plan: Plan, ours: Trace, wrong: int, suspect: Suspect) -> list[str]:
    """One line an operation, with what the server said it reused, and the mark at the wrong one."""
    asked = story_lines(plan)
    width = max(len(line) for line in asked)
    lines = [f"{line:<{width}}  {_counts(step.outcome)}" for line, step in zip(asked, ours.steps, strict=False)]
    lines[wrong] += f"  <- {_wrongness(suspect)}"
    return lines


def _counts(outcome: Observation | Failure) -> str:
    if isinstance(outcome, Failure):
        return "no answer"
    if outcome.computed is None:
        return "reuse not told"
    return f"reused {outcome.reused}, computed {outcome.computed}" if outcome.reused else f"computed {outcome.computed}"


def _wrongness(suspect: Suspect) -> str:
    if suspect.delta is None or suspect.bound is None:
        return suspect.reason or "wrong"
    return f"wrong by {suspect.delta:.2g} (bound {suspect.bound:.0e})"


def explanation_of(plan: Plan, wrong: int, why: Explanation, mitigations: Sequence[Mitigation]) -> list[str]:
    """What happened, what it needs, what helps; a sentence each."""
    lines = [_cause(plan, wrong, why.source)] if why.source is not None else []
    donor = why.source.step if why.source is not None else None
    needs = [_need(element, donor, wrong) for element in why.necessary]
    if needs:
        lines.append(f"Needs: {'; '.join(needs)}.")
    helps = [mitigation.setting for mitigation in mitigations if mitigation.clean]
    if helps:
        lines.append(f"Clean with {'; with '.join(helps)}.")
    return lines


def last_words(lost: Failure | None) -> list[str]:
    """The last log lines of a server that died."""
    return ["Its log ends:", *lost.log.splitlines()] if lost is not None and lost.log else []


def _cause(plan: Plan, wrong: int, source: StaleSource) -> str:
    stale = environment_in_words(plan.operations[source.step])
    own = environment_in_words(plan.operations[wrong])
    return (
        f"Step {wrong + 1} was answered with the state that step {source.step + 1} computed at {stale}: "
        f"with step {source.step + 1} at {own} the same reuse is right."
    )


def environment_in_words(operation: Operation) -> str:
    """``a=0.5``, ``a=0``, or ``no adapter`` where the server has none."""
    return scales_in_words(operation.scales) or "no adapter"


def _need(element: Element, donor: int | None, wrong: int) -> str:
    steps = f"steps {donor + 1} and {wrong + 1}" if donor is not None else "the two"
    return {
        Element.SHARED_PREFIX: f"the prefix that {steps} share",
        Element.SCALE_CHANGE: f"the scale change between {steps}",
        Element.ADAPTER_CHANGE: f"the change of adapter between {steps}",
        Element.REQUEST_BETWEEN: "another request in between",
        Element.SETTING_BETWEEN: f"that request at the scales of step {wrong + 1}",
    }[element]
