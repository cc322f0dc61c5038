"""What a plan opens with: sequences that a bug needs and that chance rarely brings."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from types import ModuleType

import msgspec
import pytest
from drawing import drawn
from making import SPACE

from scenarios.blocking import blocked
from scenarios.capabilities import Capabilities
from scenarios.entitlement import entitlements
from scenarios.environment import AdapterScale, Environment
from scenarios.library import (
    aborts,
    adapter_reload,
    adapter_scale,
    global_scale,
    interleaving,
    sampling_state,
    saved_slots,
    tenant_key,
    weights_reload,
)
from scenarios.operations import KINDS, Abort, Complete, Evict, Reload, Restore, Sampling, Start, Unload, kind
from scenarios.plans import Plan, requests
from scenarios.prompts import common_prefix, prompt_tokens
from scenarios.scenario import Scenario
from scenarios.swarm import Profile, long_lengths

CAPABILITIES = Capabilities(
    SPACE,
    512,
    operations=KINDS,
    samplings=tuple(Sampling),
    adapters=2,
    adapter_names=True,
    salts=True,
    slots=8,
    block=16,
    cache_tokens=1024,
)

ON = (AdapterScale(0, 1.0),)


def share(scenario: Scenario, shows: Callable[[Plan], bool]) -> float:
    """Of the plans of many rounds, how many show something."""
    rounds = [scenario.profile(random.Random(number), CAPABILITIES) for number in range(40)]
    everything = [plan for profile in rounds for plan in drawn(profile, 8)]
    return sum(map(shows, everything)) / len(everything)


def tokens(request: Complete | Start) -> tuple[int, ...]:
    return prompt_tokens(request.prompt, range(100, 200), SPACE) if request.prompt.after is None else ()


def shared_after(plan: Plan, first: int, after: int) -> int:
    """Tokens that any request after step ``after`` shares with the one of step ``first``."""
    lender = plan.operations[first]
    assert isinstance(lender, (Complete, Start))
    return max((common_prefix(tokens(lender), tokens(one)) for at, one in requests(plan) if at > after), default=0)


def test_a_plan_begins_with_one_of_its_openings() -> None:
    opening = ("lasting", "complete", "evict")
    profile = Profile(
        roots=2,
        lengths=(8, 24),
        spellings=((),),
        answers=(1,),
        lasting=(99,),
        most=5,
        kinds=("complete",),
        openings=(opening,),
    )
    for plan in drawn(profile):
        assert [kind(operation) for operation in plan.operations[:3]] == ["start", "complete", "evict"]
        first = plan.operations[0]
        assert isinstance(first, Start)
        assert first.tokens == 99
        assert len(plan.operations) <= profile.most


def test_an_opening_that_needs_what_a_known_bug_needs_is_left_out() -> None:
    profile = interleaving.SCENARIO.profile(random.Random(1), CAPABILITIES)
    assert any(profile.openings)
    without = blocked(profile, [("start",)], random.Random(1))
    assert not any(set(opening) & {"start", "brief", "lasting"} for opening in without.openings)
    assert without.openings
    assert all(not plan.overlaps for plan in drawn(without))


def test_a_long_prompt_that_was_cut_off_is_asked_again() -> None:
    def asked_again(plan: Plan) -> bool:
        cut = [(at, one.of) for at, one in enumerate(plan.operations) if isinstance(one, Abort) and one.of == at - 1]
        return any(shared_after(plan, of, at) >= 96 for at, of in cut)

    assert share(aborts.SCENARIO, asked_again) > 0.15


def test_what_is_shared_is_evicted_while_it_is_in_use() -> None:
    def evicted(plan: Plan) -> bool:
        for at, request in requests(plan):
            if isinstance(request, Start) and request.tokens > 100 and shared_after(plan, at, at) > 16:
                return any(isinstance(later, Evict) for later in plan.operations[at:])
        return False

    assert share(interleaving.SCENARIO, evicted) > 0.04


def test_ways_to_sample_differ_side_by_side_and_one_ends_first() -> None:
    def differ(plan: Plan) -> bool:
        started = [one for _, one in requests(plan) if isinstance(one, Start)]
        return any(one.sampling is not other.sampling and one.tokens < other.tokens for one, other in pairwise(started))

    assert share(sampling_state.SCENARIO, differ) > 0.08


@pytest.mark.parametrize("load", [Reload, Unload])
def test_other_weights_come_under_a_name_that_was_used_and_is_used_again(load: type[Reload | Unload]) -> None:
    def replaced(plan: Plan) -> bool:
        for at, one in enumerate(plan.operations):
            if isinstance(one, load) and one.version == 1:
                before = [asked for step, asked in requests(plan) if step < at]
                after = [asked for step, asked in requests(plan) if step > at]
                if any(
                    first.scales == second.scales and common_prefix(tokens(first), tokens(second)) > 16
                    for first in before
                    for second in after
                ):
                    return True
        return False

    assert share(adapter_reload.SCENARIO, replaced) > 0.05


def meets_again(plan: Plan, *, after: type[Evict | Restore] | None = None) -> list[set[Environment]]:
    """Environments of two requests that share a block, the one before and the other after an operation of a kind."""
    settings = entitlements(plan)
    found = []
    for first, one in requests(plan):
        for second, other in requests(plan):
            between = plan.operations[first:second]
            met = after is None or any(isinstance(operation, after) for operation in between)
            pair = [setting for setting in (settings[first], settings[second]) if setting is not None]
            if first < second and met and len(pair) == 2 and common_prefix(tokens(one), tokens(other)) > 16:
                found.append(set(pair))
    return found


def test_what_was_evicted_comes_back_in_another_environment() -> None:
    def returned(plan: Plan) -> bool:
        return any(len(pair) == 2 for pair in meets_again(plan, after=Evict))

    assert share(adapter_scale.SCENARIO, returned) > 0.1
    assert share(tenant_key.SCENARIO, returned) > 0.1


def test_one_prompt_comes_under_a_key_and_by_the_adapter_of_that_name() -> None:
    def mistakable(plan: Plan) -> bool:
        pairs = [[(one.salt, tuple(one.scales)) for one in pair] for pair in meets_again(plan)]
        return any({salt for salt, on in pair if not on} == {"a"} and ("", ON) in pair for pair in pairs)

    assert share(tenant_key.SCENARIO, mistakable) > 0.1


def test_what_was_saved_is_asked_again_right_after_it_was_restored() -> None:
    def restored(plan: Plan) -> bool:
        kinds = [kind(operation) for operation in plan.operations]
        return ("restore", "complete") in pairwise(kinds) and bool(meets_again(plan, after=Restore))

    assert share(saved_slots.SCENARIO, restored) > 0.1


def test_a_prompt_meets_other_weights_and_other_global_scales() -> None:
    def changed(plan: Plan) -> bool:
        return any(len(pair) == 2 for pair in meets_again(plan))

    assert share(weights_reload.SCENARIO, changed) > 0.1
    assert share(global_scale.SCENARIO, changed) > 0.05


@pytest.mark.parametrize(("scenario", "slow"), [(adapter_reload, "reload"), (weights_reload, "reload_weights")])
def test_what_takes_a_second_is_done_once_or_twice_a_plan(scenario: ModuleType, slow: str) -> None:
    """After a request, and before one: each of these costs as much as hundreds of requests."""
    able = msgspec.structs.replace(CAPABILITIES, slow=(slow,))
    plans = [plan for seed in range(20) for plan in drawn(scenario.SCENARIO.profile(random.Random(seed), able), 8)]
    counts = [[kind(one) for one in plan.operations].count(slow) for plan in plans]
    assert sum(counts) / len(plans) < 1.5
    assert max(counts) <= 3
    for plan in plans:
        kinds = [kind(one) for one in plan.operations]
        assert "complete" in kinds[: kinds.index(slow)]
        assert "complete" in kinds[kinds.index(slow) :]


def test_long_lengths_leave_three_of_them_and_an_answer_to_the_context() -> None:
    for context in (200, 512, 4096):
        lengths = long_lengths(Capabilities(SPACE, context))
        assert all(3 * length + 64 <= context for length in lengths)
    assert max(long_lengths(Capabilities(SPACE, 512))) > 128
    assert long_lengths(Capabilities(SPACE, 100)) == []
