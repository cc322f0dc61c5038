"""Attribution: which elements of a minimal plan are necessary, and which earlier step's state was reused.

Each element of a plan can be neutralised while everything else stays: what must stay for the answer to be wrong is
the explanation of the bug and its fingerprint. Operations other than requests need no such run: a plan from which
nothing can be taken away needs each of those that are left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from oracles.arms import own_spelling, with_setting
from oracles.observations import Trace
from scenarios.entitlement import entitlements
from scenarios.environment import Environment
from scenarios.operations import Abort, Await, Complete, Evict, Join, Operation, Other, Sampling, Start, kind
from scenarios.plans import Plan, compact, completed, replaced, requests, with_prompt, without
from scenarios.prompts import Prompt, Segment, common_prefix


class Element(StrEnum):
    """What a wrong answer can depend on."""

    SHARED_PREFIX = "shared-prefix"
    """An earlier request whose prompt begins alike."""
    SCALE_CHANGE = "scale-change"
    """The earlier request ran the same adapters at other scales, or none of them."""
    ADAPTER_CHANGE = "adapter-change"
    """The earlier request ran another adapter."""
    VERSION_CHANGE = "version-change"
    """The earlier request ran other weights under the same adapter's name."""
    SALT_CHANGE = "salt-change"
    """The earlier request belongs to another tenant."""
    WEIGHTS_CHANGE = "weights-change"
    """The earlier request ran other weights of the model."""
    REQUEST_BEFORE = "request-before"
    """Another request runs before the one that lends its state."""
    REQUEST_BETWEEN = "request-between"
    """Another request runs in between."""
    SETTING_BETWEEN = "setting-between"
    """Another request runs in the environment of the wrong one, which the check before reuse sees."""
    CUT_BACK = "cut-back"
    """The wrong prompt leaves the earlier one before its end, ends inside it or is the same: the cache is cut back."""
    GROWTH = "growth"
    """A prompt goes on after an earlier answer."""
    PIN = "pin"
    SAMPLING = "sampling"
    """An earlier request samples in a way of its own."""
    EMPTY_LIST = "empty-list"
    """The request names no adapter, by an empty list."""
    LEFT_OUT = "left-out"
    """The request leaves the adapters out."""
    PARTIAL_LIST = "partial-list"
    """The request names some adapters only."""
    OVERLAP = "start"
    AWAIT = "await"
    JOIN = "join"
    ABORT = "abort"
    GLOBAL_SCALES = "set_scales"
    RELOAD = "reload"
    UNLOAD = "unload"
    EVICT = "evict"
    FLUSH = "flush"
    SAVE = "save"
    RESTORE = "restore"
    ERASE = "erase"
    SLEEP = "sleep"
    RESTART = "restart"
    RELOAD_WEIGHTS = "reload_weights"
    OTHER_TASK = "other"


_TIMING = {Element.AWAIT, Element.JOIN}
"""How a plan makes an overlap happen, not what the bug is."""


_MEANS = {
    Element.REQUEST_BEFORE,
    Element.PIN,
    Element.OVERLAP,
    Element.ABORT,
    Element.EVICT,
    Element.OTHER_TASK,
}
"""Ways to have a slot taken, which are no part of a bug that shows where it is taken by plain requests."""
_FILLER = Segment("f", 24)


class Ablation(msgspec.Struct, frozen=True):
    """A minimal plan with one element neutralised."""

    element: Element
    plan: Plan
    step: int
    """Index of the wrong request in ``plan``."""


class StaleSource(msgspec.Struct, frozen=True):
    """The earlier step whose state the wrong answer was built on."""

    step: int
    environment: Environment
    """In which that state was computed."""


def donors(trace: Trace, wrong: int) -> list[int]:
    """Earlier requests whose state the wrong one may have got, the likeliest first.

    First those whose tokens cover what it reused and who computed of it themselves, the latest first; then those who
    cover it but say that they reused all of it too, and so only passed it on; then any that share a prefix.
    """
    prompts = [step.prompt for step in trace.steps]
    answer = trace.steps[wrong].observation
    least = (answer.reused or 1) if answer is not None else 1
    shared = {at: common_prefix(prompts[at], prompts[wrong]) for at in range(wrong) if prompts[at]}
    found = [at for at, length in shared.items() if length > 0]
    covering = [at for at in found if shared[at] >= min(least, len(prompts[at]))]
    ranks = {at: _passed_on(trace, at, least) if at in covering else _STRANGER for at in found}
    return sorted(found, key=lambda at: (ranks[at], -at))


_STRANGER = 2


def _passed_on(trace: Trace, at: int, prefix: int) -> bool:
    """Whether a request says that it reused all of that prefix, and so computed nothing of it."""
    answer = trace.steps[at].observation
    return answer is not None and (answer.reused or 0) >= prefix


def ablations(plan: Plan, wrong: int, donor: int | None) -> list[Ablation]:
    """What is between the wrong request and its donor, neutralised one element at a time."""
    if donor is None:
        return []
    found = [Ablation(Element.SHARED_PREFIX, _moved_away(plan, donor), wrong)]
    environments = entitlements(plan)
    own, other = environments[wrong], environments[donor]
    if own is not None and other is not None and own != other:
        found.append(Ablation(change_between(other, own), _at_setting_of(plan, donor, wrong), wrong))
    between = [at for at, _ in requests(plan) if donor < at < wrong]
    if between and not _referred(plan, between):
        found.append(Ablation(Element.REQUEST_BETWEEN, without(plan, between), wrong - len(between)))
    return found + _setting_of_others(plan, wrong, donor)


def plainly(plan: Plan, wrong: int, donor: int | None, elements: Sequence[Element], slots: int) -> Ablation | None:
    """The plan with nothing but plain requests, one for each of the ``slots``, to push the donor's state out.

    None where it has no other means of doing so, and for prompts that go on after an answer.
    """
    means = next((element for element in elements if element in _MEANS), None)
    if means is None or donor is None:
        return None
    lender, borrower = _plain(plan.operations[donor]), _plain(plan.operations[wrong])
    if lender.prompt.after is not None or borrower.prompt.after is not None:
        return None
    setting = own_spelling(plan, wrong)
    fillers = [
        Complete(prompt=Prompt(plan.roots + slot, (_FILLER,)), scales=setting.scales, salt=setting.salt)
        for slot in range(slots)
    ]
    between = plan.operations[donor + 1 : wrong]
    first = next((at for at, operation in enumerate(between) if _asks(operation)), 0)
    operations = (
        *_administration(plan.operations[:donor]),
        lender,
        *_administration(between[:first]),
        *fillers,
        *_administration(between[first:]),
        borrower,
    )
    return Ablation(means, compact(msgspec.structs.replace(plan, operations=operations)), len(operations) - 1)


def _administration(operations: Sequence[Operation]) -> list[Operation]:
    return [operation for operation in operations if not _asks(operation)]


def _asks(operation: Operation) -> bool:
    return isinstance(operation, (Complete, Start, Await, Join, Abort, Evict, Other))


def _plain(operation: Operation) -> Complete:
    """A request sent, awaited and left to the slot that the server chooses."""
    assert isinstance(operation, (Complete, Start))
    return msgspec.structs.replace(completed(operation), slot=None)


def relation(donor: Sequence[int], wrong: Sequence[int]) -> Element | None:
    """How a prompt goes on from an earlier one; None for the plain case, where it begins with all of it."""
    return None if common_prefix(donor, wrong) == len(donor) < len(wrong) else Element.CUT_BACK


def going_on(plan: Plan, wrong: int, donor: int) -> Plan | None:
    """The plan with the wrong prompt going on from all that the donor leaves in the cache, so that nothing is cut back.

    None for prompts that go on after an answer.
    """
    lender, borrower = plan.operations[donor], plan.operations[wrong]
    assert isinstance(lender, (Complete, Start))
    assert isinstance(borrower, (Complete, Start))
    if lender.prompt.after is not None or borrower.prompt.after is not None:
        return None
    # The last token of an answer is never computed, so that an answer of one leaves the prompt alone in the cache.
    shorter = replaced(plan, donor, msgspec.structs.replace(lender, tokens=1))
    longer = msgspec.structs.replace(lender.prompt, segments=(*lender.prompt.segments, Segment("y", 2)))
    return replaced(shorter, wrong, with_prompt(borrower, longer))


def inherent(plan: Plan, wrong: int) -> list[Element]:
    """Elements that a minimal plan shows by having them at all."""
    kinds = {kind(operation) for operation in (*plan.prologue, *plan.operations)} - {"complete"}
    found = [Element(name) for name in sorted(kinds) if Element(name) not in _TIMING]
    asked = [request for _, request in requests(plan)]
    found += [Element.GROWTH] if any(request.prompt.after is not None for request in asked) else []
    found += [Element.PIN] if any(request.slot is not None for request in asked) else []
    found += [Element.SAMPLING] if any(request.sampling is not Sampling.PLAIN for request in asked) else []
    return found


def spelling_of(operation: Operation, adapters: int) -> Element | None:
    """The odd way in which a request speaks of adapters; None where it names each of them."""
    if not isinstance(operation, (Complete, Start)) or adapters == 0:
        return None
    if operation.scales is None:
        return Element.LEFT_OUT
    if not operation.scales:
        return Element.EMPTY_LIST
    return Element.PARTIAL_LIST if len(operation.scales) < adapters else None


def change_between(donor: Environment, wrong: Environment) -> Element:
    """In what two environments differ, the rarest input first."""
    if donor.weights != wrong.weights:
        return Element.WEIGHTS_CHANGE
    if donor.salt != wrong.salt:
        return Element.SALT_CHANGE
    first = {scale.adapter: scale for scale in donor.scales}
    second = {scale.adapter: scale for scale in wrong.scales}
    if any(first[adapter].version != second[adapter].version for adapter in first.keys() & second.keys()):
        return Element.VERSION_CHANGE
    nested = first.keys() <= second.keys() or second.keys() <= first.keys()
    return Element.SCALE_CHANGE if nested else Element.ADAPTER_CHANGE


def fingerprint(engine: str, oracle: str, elements: Sequence[Element]) -> str:
    """Six hex digits that name a bug on an engine, whatever its lengths, scales and seeds."""
    identity = "\n".join([engine, oracle, *sorted(elements)])
    return hashlib.blake2b(identity.encode(), digest_size=3).hexdigest()


def _referred(plan: Plan, steps: Sequence[int]) -> bool:
    """Whether leaving these steps out would take others with them."""
    return len(without(plan, steps).operations) != len(plan.operations) - len(steps)


def _moved_away(plan: Plan, step: int) -> Plan:
    request = plan.operations[step]
    assert isinstance(request, (Complete, Start))
    prompt = msgspec.structs.replace(request.prompt, root=plan.roots, after=None, answer=0)
    return replaced(plan, step, with_prompt(request, prompt))


def _at_setting_of(plan: Plan, step: int, other: int) -> Plan:
    """The plan with one request in the environment of another."""
    return with_setting(plan, step, own_spelling(plan, other))


def _setting_of_others(plan: Plan, wrong: int, donor: int) -> list[Ablation]:
    others = [at for at, _ in requests(plan) if at < wrong and at != donor]
    changed = plan
    for at in others:
        changed = _at_setting_of(changed, at, donor)
    environments = entitlements(plan)
    if changed == plan or all(environments[at] == environments[donor] for at in others):
        return []
    return [Ablation(Element.SETTING_BETWEEN, changed, wrong)]
