"""How a plan gets simpler: for each aspect of it, the candidates one step simpler, most promising first.

A plan is minimal when no candidate of any aspect still shows what it showed. Values that several operations share
(the prompt of a donor and of its reuser, the environment of two requests) are first simplified together and only
then alone: alone, each would break the relation that the bug needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from scenarios.entitlement import entitlements
from scenarios.environment import AdapterScale, Environment
from scenarios.operations import (
    Abort,
    Await,
    Complete,
    Evict,
    Join,
    Operation,
    Other,
    Reload,
    Sampling,
    SetScales,
    Start,
    Unload,
)
from scenarios.plans import Plan, changed, completed, replaced, requests, with_prompt, without
from scenarios.prompts import Prompt, Segment
from scenarios.simpler_numbers import GENEROUS, Aspect, Candidates, Dial, Steps, fewer_tokens, shorter_segments
from scenarios.simpler_values import simpler_spellings, simpler_than, swapped

_STAND_IN_LENGTHS = (GENEROUS, 1, 2, 3, 4, 6, GENEROUS // 2)
"""Of a request that stands in for another task: long, or as short as a checkpoint near its end may need it."""


def candidates(plan: Plan, aspects: Iterable[Aspect] | None = None) -> Candidates:
    """All plans that are one step simpler in some aspects, in all of them unless told."""
    for aspect in ASPECTS if aspects is None else aspects:
        for step in aspect(plan):
            if isinstance(step, Dial):
                yield from step.ends()
            else:
                yield step


def fewer_operations(plan: Plan) -> Candidates:
    """Leave out runs of operations, long runs first, from the end; then the prologue."""
    count = len(plan.operations)
    size = count // 2
    while size >= 1:
        for start in range(count - size, -1, -1):
            yield without(plan, range(start, start + size))
        size //= 2
    if plan.prologue:
        yield msgspec.structs.replace(plan, prologue=())


def towards_serial(plan: Plan) -> Candidates:
    """Send and await what was started beside others: everything, then one request at a time."""
    started = [at for at, operation in enumerate(plan.operations) if isinstance(operation, Start)]
    if len(started) > 1:
        yield _serial(plan, set(started))
    for at in started:
        yield _serial(plan, {at})


def named_scales(plan: Plan) -> Candidates:
    """Have every request name its scales, so that no global ones need to be set."""
    if all(request.scales is not None for _, request in requests(plan)):
        return
    adapters = {scale.adapter for operation in (*plan.prologue, *plan.operations) for scale in _scales(operation)}
    pairs = zip(plan.operations, entitlements(plan), strict=True)
    named = Plan(tuple(_named(operation, environment, adapters) for operation, environment in pairs))
    yield without(named, [at for at, one in enumerate(named.operations) if isinstance(one, SetScales)])


def _named(operation: Operation, environment: Environment | None, adapters: set[int]) -> Operation:
    if not isinstance(operation, (Complete, Start, Evict)) or operation.scales is not None:
        return operation
    on = {scale.adapter: scale.scale for scale in environment.scales} if environment is not None else {}
    return msgspec.structs.replace(
        operation, scales=tuple(AdapterScale(adapter, on.get(adapter, 0.0)) for adapter in sorted(adapters))
    )


def plainer_requests(plan: Plan) -> Steps:
    """Without pins, sampling variants and salts: everywhere, then one by one; fewer and shorter fillers.

    Then plain requests in place of other tasks and of single fillers, and weights loaded over an adapter in place of an
    adapter unloaded and loaded again: what shows with those is the same bug.
    """
    for plainer in (_unpinned, _plain, _unsalted):
        everywhere = changed(plan, plainer)
        if everywhere != plan:
            yield everywhere
            yield from _one_by_one(plan, plainer)
    for at, operation in enumerate(plan.operations):
        if isinstance(operation, Evict):
            yield from _simpler_evictions(plan, at, operation)
    for at, operation in enumerate(plan.operations):
        if isinstance(operation, Other) or (isinstance(operation, Evict) and operation.requests == 1):
            yield from (replaced(plan, at, plain) for plain in _plain_requests(plan))
        if isinstance(operation, Unload):
            yield replaced(plan, at, Reload(operation.adapter, operation.version))


def simpler_scales(plan: Plan) -> Candidates:
    """Simpler environments: equal ones together, then each adapter's scale of each request alone."""
    yield from _earlier_adapters(plan)
    for spelling in dict.fromkeys(request.scales for _, request in requests(plan)):
        for simpler in simpler_spellings(spelling):
            yield changed(plan, lambda request, old=spelling, new=simpler: _respell(request, old, new))  # type: ignore[misc]
    yield from _simpler_values(plan)
    for at, operation in enumerate(plan.operations):
        if isinstance(operation, (Complete, Start, SetScales, Evict)):
            for simpler in simpler_spellings(operation.scales):
                yield replaced(plan, at, msgspec.structs.replace(operation, scales=simpler))
    yield from _simpler_prologue(plan)


def _simpler_prologue(plan: Plan) -> Candidates:
    for at, operation in enumerate(plan.prologue):
        if isinstance(operation, SetScales):
            for simpler in simpler_spellings(operation.scales):
                prologue = (*plan.prologue[:at], SetScales(simpler), *plan.prologue[at + 1 :])
                yield msgspec.structs.replace(plan, prologue=prologue)


def simpler_paths(plan: Plan) -> Candidates:
    """Shorter paths everywhere; then, one by one, a root alone, no growth, a shorter path, what was asked earlier."""
    for prompt in dict.fromkeys(request.prompt for _, request in requests(plan)):
        for shorter in _shorter_paths(prompt):
            yield changed(plan, lambda request, old=prompt, new=shorter: _reprompt(request, old, new))  # type: ignore[misc]
    for at, request in requests(plan):
        if request.prompt.segments or _shares_root(plan, at, request.prompt):
            yield replaced(plan, at, with_prompt(request, Prompt(plan.roots)))
        if request.prompt.after is not None:
            yield replaced(plan, at, with_prompt(request, _told(plan, request.prompt)))
        for shorter in _shorter_paths(request.prompt):
            yield replaced(plan, at, with_prompt(request, shorter))
        for earlier in dict.fromkeys(other.prompt for before, other in requests(plan) if before < at):
            if len(earlier.segments) < len(request.prompt.segments):
                yield replaced(plan, at, with_prompt(request, earlier))


ASPECTS: tuple[Aspect, ...] = (
    fewer_operations,
    named_scales,
    towards_serial,
    plainer_requests,
    simpler_scales,
    simpler_paths,
    fewer_tokens,
    shorter_segments,
)
"""In the order in which they are tried: operations first, lengths last."""


def _serial(plan: Plan, steps: set[int]) -> Plan:
    """The requests started at ``steps`` sent and awaited instead; whatever waits for them or cuts them goes."""
    operations = tuple(
        completed(operation) if at in steps and isinstance(operation, Start) else operation
        for at, operation in enumerate(plan.operations)
    )
    watching = [
        at
        for at, operation in enumerate(operations)
        if isinstance(operation, (Await, Join, Abort)) and operation.of in steps
    ]
    return without(msgspec.structs.replace(plan, operations=operations), watching)


def _one_by_one(plan: Plan, plainer: Callable[[Complete | Start], Operation]) -> Candidates:
    for at, request in requests(plan):
        simpler = plainer(request)
        if simpler != request:
            yield replaced(plan, at, simpler)


def _unpinned(request: Complete | Start) -> Operation:
    return msgspec.structs.replace(request, slot=None)


def _plain(request: Complete | Start) -> Operation:
    return msgspec.structs.replace(request, sampling=Sampling.PLAIN)


def _unsalted(request: Complete | Start) -> Operation:
    return msgspec.structs.replace(request, salt="")


def _simpler_evictions(plan: Plan, at: int, evict: Evict) -> Steps:
    """Fewer fillers, to the edge; shorter ones by halves, since each look at them costs as much as a dozen others."""
    yield Dial(evict.requests, lambda number: replaced(plan, at, msgspec.structs.replace(evict, requests=number)))
    for length in dict.fromkeys((1, evict.length // 2)):
        if 0 < length < evict.length:
            yield replaced(plan, at, msgspec.structs.replace(evict, length=length))


def _plain_requests(plan: Plan) -> Iterator[Complete]:
    """A request of its own root in each environment that the plan's requests name, the last one's first.

    In several lengths: how much another task computes is not told.
    """
    asked = [request for _, request in requests(plan)]
    for scales, salt in dict.fromkeys((request.scales, request.salt) for request in reversed(asked)):
        for length in _STAND_IN_LENGTHS:
            yield Complete(prompt=Prompt(plan.roots, (Segment("o", length),)), scales=scales, salt=salt)


def _earlier_adapters(plan: Plan) -> Candidates:
    """Swap an adapter that is used with an earlier one that is not, so that one bug has one form."""
    named = [scale for operation in (*plan.prologue, *plan.operations) for scale in _scales(operation)]
    used = sorted({scale.adapter for scale in named if scale.scale != 0})
    for wanted, adapter in enumerate(used):
        if wanted != adapter:
            yield Plan(
                tuple(_swapped(operation, wanted, adapter) for operation in plan.operations),
                tuple(_swapped(operation, wanted, adapter) for operation in plan.prologue),
            )


def _simpler_values(plan: Plan) -> Candidates:
    """One value of a scale replaced by a simpler one wherever it stands: two requests may have to agree on it."""
    everywhere = (*plan.prologue, *plan.operations)
    values = {scale.scale for operation in everywhere for scale in _scales(operation)} - {0.0}
    for value in sorted(values):
        for simpler in simpler_than(value):
            if simpler:
                yield Plan(
                    tuple(_revalued(operation, value, simpler) for operation in plan.operations),
                    tuple(_revalued(operation, value, simpler) for operation in plan.prologue),
                )


def _revalued(operation: Operation, old: float, new: float) -> Operation:
    if not _scales(operation):
        return operation
    scales = tuple(
        AdapterScale(scale.adapter, new if scale.scale == old else scale.scale) for scale in _scales(operation)
    )
    return msgspec.structs.replace(operation, scales=scales)


def _scales(operation: Operation) -> tuple[AdapterScale, ...]:
    return (operation.scales or ()) if isinstance(operation, (Complete, Start, SetScales, Evict)) else ()


def _swapped(operation: Operation, one: int, other: int) -> Operation:
    if not _scales(operation):
        return operation
    return msgspec.structs.replace(operation, scales=swapped(_scales(operation), one, other))


def _shorter_paths(prompt: Prompt) -> Iterator[Prompt]:
    for at in reversed(range(len(prompt.segments))):
        yield msgspec.structs.replace(prompt, segments=(*prompt.segments[:at], *prompt.segments[at + 1 :]))
    if prompt.after is not None:
        yield Prompt(prompt.root, prompt.segments)


def _told(plan: Plan, prompt: Prompt) -> Prompt:
    """A prompt that goes on after an answer, with tokens of its own in the answer's place."""
    if prompt.after is None:
        return prompt
    earlier = plan.operations[prompt.after]
    assert isinstance(earlier, (Complete, Start))
    before = _told(plan, earlier.prompt)
    answer = (Segment("g", prompt.answer),) if prompt.answer else ()
    return Prompt(before.root, (*before.segments, *answer, *prompt.segments))


def _shares_root(plan: Plan, step: int, prompt: Prompt) -> bool:
    return any(at != step and request.prompt.root == prompt.root for at, request in requests(plan))


def _respell(
    request: Complete | Start, old: tuple[AdapterScale, ...] | None, new: tuple[AdapterScale, ...]
) -> Operation:
    return msgspec.structs.replace(request, scales=new) if request.scales == old else request


def _reprompt(request: Complete | Start, old: Prompt, new: Prompt) -> Operation:
    return with_prompt(request, new) if request.prompt == old else request
