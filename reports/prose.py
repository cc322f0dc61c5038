"""A finding in plain words, for somebody who reads nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from oracles.divergence import MOST, JensenShannon
from oracles.evidence import Arm
from reports.escaping import token_text
from reports.record import Divergence, FindingRecord, LostReuse, Mitigation, RunRecord
from scenarios.plans import Plan
from scenarios.story import story_lines

ELEMENTS = {
    "shared-prefix": "an earlier request whose prompt begins alike",
    "scale-change": "another adapter scale in that earlier request",
    "adapter-change": "another adapter in that earlier request",
    "request-before": "another request before the one whose state was reused",
    "request-between": "another request in between",
    "setting-between": "another request running at the scales of the wrong one",
    "version-change": "other weights under the adapter's name in that earlier request",
    "salt-change": "another tenant key in that earlier request",
    "weights-change": "other weights of the model in that earlier request",
    "fork": "a prompt that leaves the earlier one before its end",
    "cut-back": "an earlier entry that has to be cut back",
    "rewind": "a prompt that ends inside the earlier one",
    "resend": "the same prompt again",
    "growth": "a prompt that goes on after an answer",
    "pin": "requests pinned to slots",
    "sampling": "an earlier request that samples in a way of its own",
    "empty-list": "an adapter list that is empty",
    "left-out": "adapters left out of the request",
    "partial-list": "a list that names some adapters only",
    "start": "requests side by side",
    "await": "the moment at which the next request comes",
    "join": "the order in which requests end",
    "abort": "an aborted request",
    "set_scales": "a change of the global scales",
    "reload": "an adapter reloaded with other weights",
    "unload": "an adapter unloaded and loaded again",
    "evict": "prompts that push entries out of the cache",
    "flush": "a flush of the cache",
    "save": "a saved slot",
    "restore": "a restored slot",
    "erase": "an erased slot",
    "restart": "a restart of the server",
    "sleep": "a sleep of the server",
    "reload_weights": "reloaded weights of the model",
    "other": "other work in between",
}
"""What can be taken from a plan, in words."""

CAUSES = {
    "key-omits-input": "the cache's key leaves out something that decides the answer",
    "guard-compares-wrong-thing": "the check before reuse compares with the wrong thing",
    "inherited-state": "state of an earlier request is inherited without a cache hit",
    "identity-not-updated": "the record of what is cached outlives what was cached",
    "key-omits-version": "the cache's key leaves out which weights were loaded",
    "restored-past-prefix": "state is reused beyond what the prompts share",
    "invalid-data-published": "state that was never finished is offered for reuse",
    "tiers-disagree": "a saved or lower copy of the state differs from what it stands for",
    "sampling-state": "sampling state of an earlier request is left behind",
    "spellings-differ": "two ways to say the same thing give different answers",
    "illegal-reuse": "more is reused than the prompts share",
    "health": "the server gives no answer that can be judged",
}


PROMISES = {
    "asked again": "the request right before it had the same settings and most of the same prompt",
    "restored from a file": "the state of such a request had just been restored into its slot, and without saving and "
    "restoring as much is reused",
    "pinned to another slot": "such a request had run before, and the server finds its state when no slot is named",
}
"""Why a hit had to come, in words."""

_STALE = {"logprobs", "tokens", "accounting"}
"""Oracles whose findings are about reused or inherited state."""
_WRONG = "the server does not answer as its inputs say"


def element_in_words(element: str) -> str:
    """An element of a plan in words; its own name where we have none."""
    return ELEMENTS.get(element, element.replace("-", " "))


def kind_in_words(kind: str) -> str:
    """What a kind of finding means."""
    return CAUSES.get(kind, kind.replace("-", " "))


def paragraph(finding: FindingRecord) -> list[str]:
    """What happened, how wrong it is, why, how sure: sentences in that order."""
    return [
        sentence for sentence in (_asked(finding), _wrongness(finding), _cause(finding), _surety(finding)) if sentence
    ]


def _asked(finding: FindingRecord) -> str:
    step = finding.steps[finding.wrong - 1] if finding.wrong <= len(finding.steps) else None
    if step is not None and step.error is not None:
        return f"Step {finding.wrong} of {finding.operations} got no answer that can be judged: {step.error}."
    which = f"step {finding.wrong} of {finding.operations}, {_request(finding)}"
    if finding.oracle == "accounting":
        reused = step.reused if step is not None else None
        most = "shares that many" if finding.reusable is None else f"shares more than {finding.reusable} with it"
        return f"The server says that {which}, reused {reused} tokens; no request that it may reuse {most}."
    if finding.oracle == "metamorphic":
        return f"The server answered {which}, differently from the same request with every adapter named."
    return f"The server answered {which}, wrongly: the same request, computed from nothing, gives another answer."


def _request(finding: FindingRecord) -> str:
    line = story_lines(Plan(finding.plan, finding.prologue))[finding.wrong - 1]
    return " ".join(line.partition("  ")[0].split())


def _wrongness(finding: FindingRecord) -> str:
    if finding.max_abs_logprob_delta is None or finding.bound is None:
        return ""
    return (
        f"{_choice(finding)}Log probabilities are off by up to {finding.max_abs_logprob_delta:.2g} nats; "
        f"rounding explains at most {finding.bound:.1g} on this server.{_apart(finding.divergence)}"
    )


def _apart(at: Divergence | None) -> str:
    """How differently the answers read, and how near the right one was to another token."""
    if at is None or at.jensen_shannon is None:
        return ""
    words = (
        f" The two distributions are {_nats(at.jensen_shannon)} apart (Jensen-Shannon divergence, at most {MOST:.2f})"
    )
    return f"{words}; the right one leads its next token by {at.lead:.2g} nats." if at.lead is not None else f"{words}."


def _nats(divergence: JensenShannon) -> str:
    least, most = f"{divergence.least:.2g}", f"{divergence.most:.2g}"
    return f"{least} nats" if least == most else f"{least} to {most} nats"


def _choice(finding: FindingRecord) -> str:
    at = finding.divergence
    if at is None or not at.gap or not at.target or at.position >= len(finding.answer):
        return ""
    row = finding.answer[at.position]
    if row.target is None or row.reference is None:
        return ""
    ours, theirs = token_name(finding, row.target), token_name(finding, row.reference)
    where = f"Token {at.position + 1} of the answer is {ours}"
    return f"{where}, where the right computation prefers {theirs} by {at.gap:.2g} nats. "


def token_name(finding: FindingRecord, token: int) -> str:
    """A token's text in quotes where it is known, its number otherwise."""
    text = finding.token_texts.get(str(token))
    return f"\N{LEFT DOUBLE QUOTATION MARK}{token_text(text)}\N{RIGHT DOUBLE QUOTATION MARK}" if text else f"#{token}"


def _cause(finding: FindingRecord) -> str:
    """What had been set before the steps, and whose state was used."""
    told = ["Before:", *(["Step"] if finding.stale_source is not None else [])]
    return " ".join(line for line in finding.explanation if line.startswith(tuple(told)))


def _surety(finding: FindingRecord) -> str:
    repeats = finding.reproduced
    words = [f"It came back in {repeats.k} of {repeats.n} runs from fresh state"]
    if finding.respelled is not None and finding.respelled.clean:
        return f"{words[0]}; it needs no history, and with every adapter named it is right."
    words += ["the request without its history is right"] if finding.alone.clean else []
    words += [f"the control, {_control(finding.control)}, is right"] if finding.control.clean else []
    return f"{'; '.join(words)}."


def _control(control: Arm) -> str:
    if control.reused:
        return "which reuses the same tokens lawfully"
    return "in which every earlier request is at the settings of the wrong one"


def until_fixed(finding: FindingRecord) -> str:
    """What a user can do about it today."""
    helps = [_remedy(mitigation, finding) for mitigation in finding.mitigations if mitigation.clean]
    if not helps:
        return "No setting that was tried avoids it."
    return f"Until it is fixed, any of these avoids it: {joined(helps, 'or')}."


def _remedy(mitigation: Mitigation, finding: FindingRecord) -> str:
    """A way past the cache was tried with every request: what one of them writes, others read."""
    bypass = finding.bypass is not None and mitigation is finding.mitigations[0]
    return f"{mitigation.setting} in every request" if bypass else mitigation.setting


def legend(lines: Iterable[str]) -> str:
    """What the short names in the lines of a plan stand for, as far as they occur."""
    text = "\n".join(lines)
    found = [(words, re.search(pattern, text)) for pattern, words in _NAMES]
    return " ".join(words.format(*match.groups()) for words, match in found if match is not None)


_NAMES = (
    (
        r"\b(?:complete|start) (?=[A-Z])",
        "Capital letters are prompts: those of one letter begin with the same token, any others share nothing.",
    ),
    (r"\b([A-Z]\d*)\[:(\d+)\]", "{0}[:{1}] is {0} cut to its first tokens, {1} of them."),
    (
        r"\b([A-Z]\d*)\.([a-z]+)(\d+)",
        "In {0}.{1}{2}, the first token is followed by the beginning of a text called {1}, {2} of its tokens.",
    ),
    (r"\b([a-z])=(-?[\d.]+)", "{0}={1} is adapter {0} at scale {1}."),
    (r"\(global scales\)", "With global scales, a request names no adapter and follows what the server is set to."),
    (r"\bsalt=", "The salt is a tenant's key, across which nothing may be shared."),
)


def joined(words: Sequence[str], conjunction: str = "and") -> str:
    """``a, b and c``."""
    return f" {conjunction} ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def counted(number: int, noun: str) -> str:
    """``1 finding``, ``2 findings``."""
    return f"{number:,} {noun}".replace(",", "\N{NARROW NO-BREAK SPACE}") + ("" if number == 1 else "s")


def verdict_line(record: RunRecord) -> str:
    """The verdict as a heading."""
    new = sum(not finding.known for finding in record.findings)
    known = len(record.findings) - new
    if new:
        tail = f", {counted(known, 'known one')} beside" if known else ""
        stale = any(finding.oracle in _STALE for finding in record.findings if not finding.known)
        return f"{counted(new, 'new finding')}{tail}: {'answers were computed from stale state' if stale else _WRONG}"
    if record.verdict == "inconclusive":
        return "Inconclusive: the run could not judge"
    if known:
        return f"Clean but for {counted(known, 'known finding')}"
    return "Clean: every answer was the one that its own inputs give"


def compared(record: RunRecord) -> str:
    """What was compared with what, in a sentence."""
    if record.target is None or record.reference is None:
        return "No server came up, so nothing was compared."
    return (
        f"{record.target.engine} {record.target.version}, compared with {_reference(record.reference.mode)}: "
        f"{counted(record.steps, 'operation')} in {record.elapsed_s:.1f} s."
    )


def _reference(mode: str) -> str:
    return {
        "launched": "a second server of the same build with every cache off",
        "bypass": "itself, told to skip its cache",
        "url": "another server",
    }.get(mode, f"a reference ({mode})")


def loss_in_words(lost: LostReuse) -> str:
    """What was computed again although it was at hand."""
    settings = f" The server was started with {' '.join(lost.settings)} besides." if lost.settings else ""
    times = f"; seen {lost.times} times" if lost.times > 1 else ""
    why = PROMISES.get(lost.promise, lost.promise)
    return (
        f"Step {lost.step} computed again what it could have reused, up to {counted(lost.tokens, 'prompt token')}: "
        f"{why}{times}.{settings}"
    )


def by_reason(not_exercised: Mapping[str, str]) -> dict[str, list[str]]:
    """What was not exercised, by why."""
    reasons: dict[str, list[str]] = {}
    for what, why in not_exercised.items():
        reasons.setdefault(why, []).append(what)
    return reasons


def others_in_words(record: RunRecord) -> list[str]:
    """What somebody else did to the target during the run, and what that means for the verdict."""
    others = record.others
    if others is None:
        return []
    lines = []
    if others.requests:
        told = f"{others.told_by}, at least {others.work} {others.unit}" if others.work else others.told_by
        lines.append(f"somebody else used the target meanwhile ({told}): what hangs on timing stays unconfirmed")
    lines += [f"somebody else changed {name} ({times} times seen)" for name, times in others.changes.items()]
    if others.earlier:
        lines.append(
            f"the target had prompts in its cache that this run did not ask, of others or of an earlier run "
            f"({counted(others.earlier, 'hit')} on them, which did not come back on other prompts)"
        )
    return lines
