"""A finding in words: its story line by line, its explanation sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzer.triage.explain import Explanation
from oracles.arms import own_spelling
from oracles.attribution import Element, StaleSource
from oracles.judgement import Suspect
from oracles.observations import Done, Failure, Observation, Step, Trace
from reports.record import Mitigation
from scenarios.operations import scales_in_words
from scenarios.plans import Plan
from scenarios.story import count, prologue_lines, story_lines


def story_of(plan: Plan, ours: Trace, wrong: int, suspect: Suspect, *, adapters: int = 0) -> list[str]:
    """One line an operation, with what the server said it reused, and the mark at the wrong one."""
    asked = story_lines(plan, adapters=adapters)
    width = max(len(line) for line in asked)
    said = [_said(step) for step in ours.steps] + [""] * len(asked)
    lines = [f"{line:<{width}}  {words}".rstrip() for line, words in zip(asked, said, strict=False)]
    lines[wrong] += f"  <- {_wrongness(suspect)}"
    return lines


def _said(step: Step) -> str:
    match step.outcome:
        case Failure():
            return "no answer"
        case Done(count=None):
            return ""
        case Done(count=number):
            return f"({number})"
    return _counts(step.outcome, aborted=step.aborted)


def _counts(answer: Observation, *, aborted: bool) -> str:
    if aborted:
        return f"cut after {count(len(answer.positions), 'token')}"
    if answer.computed is None:
        return "reuse not told"
    return f"reused {answer.reused}, computed {answer.computed}" if answer.reused else f"computed {answer.computed}"


def _wrongness(suspect: Suspect) -> str:
    if suspect.delta is None or suspect.bound is None:
        return suspect.reason or "wrong"
    return f"wrong by {suspect.delta:.2g} (bound {suspect.bound:.0e})"


def explanation_of(plan: Plan, wrong: int, why: Explanation, mitigations: Sequence[Mitigation]) -> list[str]:
    """What was set before, what happened, what it needs, what helps; a sentence each."""
    before = prologue_lines(plan)
    lines = [f"Before: {'; '.join(before)}."] if before else []
    lines += [_cause(plan, wrong, why.source)] if why.source is not None else []
    needs = [need for element in why.necessary if (need := _need(element, why.donor, wrong))]
    lines += [f"Needs: {'; '.join(dict.fromkeys(needs))}."] if needs else []
    helps = [mitigation.setting for mitigation in mitigations if mitigation.clean]
    lines += [f"Clean with {'; with '.join(helps)}."] if helps else []
    return lines


def last_words(lost: Failure | None) -> list[str]:
    """The last log lines of a server that died."""
    return ["Its log ends:", *lost.log.splitlines()] if lost is not None and lost.log else []


def _cause(plan: Plan, wrong: int, source: StaleSource) -> str:
    stale, own = environment_in_words(plan, source.step), environment_in_words(plan, wrong)
    return (
        f"Step {wrong + 1} was answered with the state that step {source.step + 1} computed at {stale}: "
        f"with step {source.step + 1} at {own} the same reuse is right."
    )


def environment_in_words(plan: Plan, step: int) -> str:
    """``a=0.5``, ``a=0``, or ``no adapter`` where the plan has none."""
    setting = own_spelling(plan, step)
    salt = f" salt={setting.salt}" if setting.salt else ""
    return (scales_in_words(setting.scales or ()) or "no adapter") + salt


def _need(element: Element, donor: int | None, wrong: int) -> str:
    steps = f"steps {donor + 1} and {wrong + 1}" if donor is not None else "the two"
    words = {
        Element.SHARED_PREFIX: f"the prefix that {steps} share",
        Element.SCALE_CHANGE: f"the scale change between {steps}",
        Element.ADAPTER_CHANGE: f"the change of adapter between {steps}",
        Element.VERSION_CHANGE: f"the other weights under one name between {steps}",
        Element.SALT_CHANGE: f"the other tenant key between {steps}",
        Element.WEIGHTS_CHANGE: f"the other weights between {steps}",
        Element.REQUEST_BEFORE: "another request before them",
        Element.REQUEST_BETWEEN: "another request in between",
        Element.SETTING_BETWEEN: f"that request at the scales of step {wrong + 1}",
        Element.CUT_BACK: f"a prompt that does not go on from all that step {(donor or 0) + 1} left in the cache",
        Element.GROWTH: "a prompt that goes on after an answer",
        Element.PIN: "requests pinned to slots",
        Element.SAMPLING: "a request that samples in a way of its own",
        Element.OVERLAP: "requests side by side",
        Element.ABORT: "an abort",
        Element.GLOBAL_SCALES: "global scales",
        Element.EVICT: "the eviction",
        Element.SAVE: "a saved slot",
        Element.RESTORE: "a restored slot",
        Element.ERASE: "an erased slot",
        Element.SLEEP: "a sleep in between",
        Element.RESTART: "a restart in between",
        Element.OTHER_TASK: "a request of another kind",
    }
    return words.get(element, f"the {element.value.replace('_', ' ').replace('-', ' ')}")
