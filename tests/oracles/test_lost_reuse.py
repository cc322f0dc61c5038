"""Reuse that was promised and did not come."""

from __future__ import annotations

import msgspec
import pytest
from making import SPACE, path, plan_of

from oracles.lost_reuse import Loss, Promise, control, kept, losses
from oracles.observations import Done, Failure, Observation, Position, Step, Trace
from scenarios.environment import Environment
from scenarios.operations import Complete, Operation, Restore, Save, Start
from scenarios.plans import Plan
from scenarios.prompts import Prompt, prompt_tokens

P, Q = path(0, ("a", 19)), path(1, ("b", 19))


def ask(prompt: Prompt, slot: int | None = None) -> Complete:
    return Complete(prompt=prompt, slot=slot)


def answered(prompt: Prompt, reused: int, slot: int = 0) -> Step:
    tokens = prompt_tokens(prompt, (100, 101), SPACE)
    told = Observation([Position(7, [])], reused, len(tokens) - reused, slot)
    return Step(outcome=told, prompt=tokens, environment=Environment(), asked=1)


def lost(operations: list[Operation], *steps: Step) -> list[Loss]:
    return losses(plan_of(*operations), Trace(steps))


def test_a_prompt_asked_again_and_computed_anew() -> None:
    (loss,) = lost([ask(P), ask(P)], answered(P, 0), answered(P, 0))
    assert (loss.step, loss.lender, loss.tokens, loss.promise) == (1, 0, 20, Promise.AGAIN)
    assert control(plan_of(ask(P), ask(P)), loss) is None


@pytest.mark.parametrize(
    ("operations", "steps"),
    [
        ([ask(P), ask(P)], [answered(P, 0), answered(P, 1)]),
        ([ask(P), ask(Q)], [answered(P, 0), answered(Q, 0)]),
        ([ask(P, 0), ask(P, 1)], [answered(P, 0, 0), answered(P, 0, 1)]),
        ([ask(P), Save(0), ask(P)], [answered(P, 0), Step(outcome=Done(20)), answered(P, 0)]),
        ([ask(P), ask(P)], [answered(P, 0), Step(outcome=Failure("busy"))]),
        ([Start(prompt=P), ask(P)], [answered(P, 0), answered(P, 0)]),
    ],
    ids=["some of it reused", "another prompt", "pinned to another slot", "not right after", "no answer", "beside it"],
)
def test_nothing_was_promised(operations: list[Operation], steps: list[Step]) -> None:
    assert lost(operations, *steps) == []


def restored(reused: int, *, saved: int = 20, slot: int = 0) -> tuple[Plan, list[Loss]]:
    operations: list[Operation] = [ask(P), Save(0), ask(Q), Restore(0), ask(P)]
    told = Step(outcome=Done(saved))
    steps = [answered(P, 0), told, answered(Q, 0), told, answered(P, reused, slot)]
    return plan_of(*operations), lost(operations, *steps)


def test_a_restored_slot_that_is_hardly_used() -> None:
    plan, (loss,) = restored(3)
    assert (loss.step, loss.lender, loss.promise) == (4, 0, Promise.RESTORED)
    assert control(plan, loss) == (plan_of(ask(P), ask(P)), 1)
    assert kept(loss, Trace([answered(P, 0), answered(P, 19)]), 1)
    assert not kept(loss, Trace([answered(P, 0), answered(P, 9)]), 1)


def test_a_restored_slot_promises_no_more_than_it_holds() -> None:
    assert restored(10)[1] == []
    assert restored(3, saved=12)[1] == []
    assert restored(3, slot=1)[1] == []


def test_a_prompt_that_lost_its_slot_is_asked_in_another() -> None:
    plan = plan_of(ask(P, 0), ask(Q, 0), ask(P, 1))
    (loss,) = losses(plan, Trace([answered(P, 0), answered(Q, 0), answered(P, 0, 1)]))
    assert (loss.step, loss.lender, loss.promise) == (2, 0, Promise.PINNED)
    unpinned = msgspec.structs.replace(plan, operations=(*plan.operations[:2], ask(P)))
    assert control(plan, loss) == (unpinned, 2)


def test_a_prompt_that_still_has_its_slot_promises_another_nothing() -> None:
    plan = plan_of(ask(P, 0), ask(Q, 1), ask(P, 1))
    assert losses(plan, Trace([answered(P, 0), answered(Q, 0, 1), answered(P, 0, 1)])) == []
