"""Attribution: the control arm, the request alone, ablations, donors, fingerprints."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from making import answer, ask, path, plan_of, plans, position, step

from oracles.arms import alone, control_arm, in_other_words
from oracles.attribution import Element, ablations, change_between, donors, fingerprint, going_on, plainly
from oracles.observations import Trace
from scenarios.entitlement import entitlements
from scenarios.environment import environment
from scenarios.operations import Abort, Complete, Other, Reload, ReloadWeights, Sampling, Save, Start, Task
from scenarios.plans import Plan

P, Q = path(0, ("a", 3)), path(1)
BUG = plan_of(ask(P, 0.0), ask(Q, 1.0), ask(P, 1.0))


def test_the_control_arm_has_one_environment() -> None:
    assert control_arm(BUG, 2) == plan_of(ask(P, 1.0), ask(Q, 1.0), ask(P, 1.0))


def test_a_plan_of_one_environment_is_its_own_control_arm() -> None:
    assert control_arm(plan_of(ask(P, 1.0), ask(Q, 1.0)), 1) is None


def test_an_arm_that_only_spells_it_otherwise_is_the_plan_in_other_words() -> None:
    """Where it is wrong too, that says nothing of lawful reuse."""
    spelled = plan_of(ask(Q), ask(P, 0.0))
    arm = control_arm(spelled, 1)
    assert arm is not None
    assert in_other_words(arm, spelled)
    lawful = control_arm(BUG, 2)
    assert lawful is not None
    assert not in_other_words(lawful, BUG)
    sampled = plan_of(Complete(prompt=P, sampling=Sampling.BIAS), ask(P))
    otherwise = control_arm(sampled, 1)
    assert otherwise is not None
    assert not in_other_words(otherwise, sampled)


@given(plans)
def test_the_control_arm_asks_the_same_prompts_in_one_environment(plan: Plan) -> None:
    wrong = len(plan.operations) - 1
    arm = control_arm(plan, wrong)
    if arm is None:
        return
    assert [operation.prompt for operation in arm.operations] == [operation.prompt for operation in plan.operations]  # type: ignore[union-attr]
    assert set(entitlements(arm)) == {entitlements(plan)[wrong]}
    assert control_arm(arm, wrong) is None


def test_a_request_alone() -> None:
    assert alone(BUG, 2) == (plan_of(ask(P, 1.0)), 0)


def test_every_element_of_the_bug_is_neutralised_once() -> None:
    found = {ablation.element: ablation for ablation in ablations(BUG, 2, 0)}
    assert set(found) == {
        Element.SHARED_PREFIX,
        Element.SCALE_CHANGE,
        Element.REQUEST_BETWEEN,
        Element.SETTING_BETWEEN,
    }
    assert found[Element.SCALE_CHANGE].plan == plan_of(ask(P, 1.0), ask(Q, 1.0), ask(P, 1.0))
    assert found[Element.REQUEST_BETWEEN].plan == plan_of(ask(P, 0.0), ask(P, 1.0))
    assert found[Element.REQUEST_BETWEEN].step == 1
    assert found[Element.SETTING_BETWEEN].plan == plan_of(ask(P, 0.0), ask(Q, 0.0), ask(P, 1.0))
    moved = found[Element.SHARED_PREFIX].plan
    assert [request.prompt.root for request in moved.operations] == [2, 1, 0]  # type: ignore[union-attr]


def test_nothing_is_neutralised_without_a_donor() -> None:
    assert ablations(BUG, 2, None) == []


def test_a_prompt_that_goes_on_from_its_donor_cuts_nothing_back() -> None:
    resent = plan_of(ask(P, 0.0, tokens=4), ask(Q, 1.0), ask(P, 1.0))
    assert going_on(resent, 2, 0) == plan_of(ask(P, 0.0), ask(Q, 1.0), ask(path(0, ("a", 3), ("y", 2)), 1.0))


def test_what_changed_between_two_environments() -> None:
    half, full = (environment(ask(P, scale).scales or ()) for scale in (0.5, 1.0))
    other = environment(ask(P, 0.0, 1.0).scales or ())
    assert change_between(half, full) is Element.SCALE_CHANGE
    assert change_between(environment(()), full) is Element.SCALE_CHANGE
    assert change_between(other, full) is Element.ADAPTER_CHANGE


def test_a_donor_covers_what_was_reused() -> None:
    told = answer(position(1, {}), reused=3, computed=1)
    asked = ((1, 2, 9), (1, 2, 3), (5, 5), (1, 2, 3, 4))
    run = Trace([step(told, prompt=prompt) for prompt in asked])
    assert donors(run, 3) == [1, 0]


def test_who_only_passed_it_on_comes_after_who_computed_it() -> None:
    """The latest of them reused all that is reused in the end: its state is the first one's."""
    asked = ((1, 2, 3, 4), (1, 2, 3, 4), (1, 9), (1, 2, 3, 4))
    counts = ((0, 4), (3, 1), (1, 1), (3, 1))
    told = [answer(position(1, {}), reused=reused, computed=computed) for reused, computed in counts]
    run = Trace([step(one, prompt=prompt) for one, prompt in zip(told, asked, strict=True)])
    assert donors(run, 3) == [0, 1, 2]


def test_a_fingerprint_is_what_was_needed_on_which_engine() -> None:
    elements = [Element.SHARED_PREFIX, Element.SCALE_CHANGE]
    name = fingerprint("llama.cpp", "answer", elements)
    assert name == fingerprint("llama.cpp", "answer", elements[::-1])
    assert len(name) == 6
    assert int(name, 16) >= 0
    others = {
        fingerprint("vllm", "answer", elements),
        fingerprint("llama.cpp", "health", elements),
        fingerprint("llama.cpp", "answer", elements[:1]),
    }
    assert name not in others
    assert len(others) == 3


@pytest.mark.parametrize("load", [ReloadWeights(1), Reload(0, 1)])
def test_in_the_control_arm_other_weights_are_there_from_the_beginning(load: Reload | ReloadWeights) -> None:
    plan = plan_of(ask(P, 1.0), load, ask(P, 1.0))
    arm = control_arm(plan, 2)
    assert arm == Plan(plan.operations, (load,))
    assert control_arm(arm, 2) is None
    back = plan_of(load, ask(P, 1.0), msgspec.structs.replace(load, version=0), ask(P, 1.0))
    assert control_arm(back, 3) == plan_of(back.operations[2], *back.operations[1:])


def test_in_the_control_arm_all_sample_as_the_wrong_request_does() -> None:
    """What another way of sampling left behind would make the arm wrong too, and the finding would be dropped."""
    penalised = msgspec.structs.replace(ask(P, 0.0), sampling=Sampling.PENALTIES)
    assert control_arm(plan_of(penalised, ask(Q, 1.0)), 1) == plan_of(ask(P, 1.0), ask(Q, 1.0))
    assert control_arm(plan_of(penalised, ask(Q, 0.0)), 1) == plan_of(ask(P, 0.0), ask(Q, 0.0))


def test_by_plain_means_a_request_for_each_slot_takes_the_place_of_a_pin() -> None:
    pinned = [msgspec.structs.replace(request, slot=0) for request in (ask(P, 0.0), ask(Q, 0.5), ask(P, 1.0))]
    plan = plan_of(ask(path(2), 1.0), pinned[0], Save(0), *pinned[1:])
    plain = plainly(plan, 4, 1, [Element.SHARED_PREFIX, Element.PIN], 2)
    assert plain is not None
    fillers = [ask(path(root, ("f", 24)), 1.0) for root in (1, 2)]
    assert plain.plan == plan_of(ask(P, 0.0), Save(0), *fillers, ask(P, 1.0))
    assert plain.step == 4


def test_by_plain_means_nothing_runs_side_by_side() -> None:
    aside = Start(prompt=path(2, ("a", 9)), tokens=48)
    lender = Start(prompt=P, scales=ask(P, 0.0).scales, tokens=4)
    plan = plan_of(aside, lender, Abort(0), Other(Task.CHAT), ask(P, 1.0))
    plain = plainly(plan, 4, 1, [Element.OVERLAP, Element.ABORT], 1)
    assert plain is not None
    assert not plain.plan.overlaps
    assert plain.plan.operations[0] == Complete(prompt=P, scales=ask(P, 0.0).scales, tokens=4)
    assert len(plain.plan.operations) == 3


def test_what_needs_no_such_means_is_plain_as_it_is() -> None:
    assert plainly(BUG, 2, 0, [Element.SHARED_PREFIX, Element.REQUEST_BETWEEN], 1) is None
    assert plainly(BUG, 2, None, [Element.PIN], 1) is None
