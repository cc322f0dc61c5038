"""What the runs on fresh state must show before a suspect is called a finding."""

from __future__ import annotations

import msgspec
import pytest

from oracles.evidence import Arm, Evidence, Repeats, Verdict, decide, reuse_witnessed
from oracles.judgement import Oracle
from oracles.sequential import Paired

PROVED = Evidence(
    oracle=Oracle.LOGPROBS, repeats=Repeats(5, 5), moved=4.0, alone=Arm(True), control=Arm(True), reused=5
)


def but(**other: object) -> Evidence:
    return msgspec.structs.replace(PROVED, **other)


def test_right_alone_right_in_the_control_arm_wrong_each_time() -> None:
    assert decide(PROVED).verdict is Verdict.FINDING


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (but(repeats=Repeats(0, 5)), "0 of 5"),
        (but(repeats=Repeats(4, 5)), "4 of 5 serial runs"),
        (but(alone=Arm(False)), "alone"),
        (but(control=Arm(False, delta=3.0)), "control arm"),
        (but(control=Arm(False)), "control arm"),
        (but(repeats=Repeats(1, 10), timing=True), "1 of 10"),
        (but(oracle=Oracle.HEALTH, repeats=Repeats(2, 5)), "2 of 5"),
        (but(oracle=Oracle.HEALTH, alone=Arm(False)), "alone"),
        (but(paired=Paired(wins=9, losses=4, unlawful=6)), "9 of 13 pairs; try --numerics exact"),
        (but(paired=Paired(wins=2, mismatched=10)), "no lawful run reuses and computes as many tokens"),
        (but(paired=Paired(wins=20), repeats=Repeats(1, 5)), "1 of 5"),
    ],
)
def test_less_is_inconclusive_and_says_why(evidence: Evidence, reason: str) -> None:
    decision = decide(evidence)
    assert decision.verdict is Verdict.INCONCLUSIVE
    assert reason in decision.reason


def test_neither_a_hit_nor_the_bypass_is_asked_for() -> None:
    """A recycled slot needs no cache hit, and its state survives a bypass."""
    assert decide(but(reused=0, bypass=Arm(False))).verdict is Verdict.FINDING
    assert not reuse_witnessed(but(reused=0))
    assert reuse_witnessed(PROVED)


def test_a_control_arm_that_is_much_less_wrong_does_not_acquit() -> None:
    assert decide(but(control=Arm(False, delta=0.01))).verdict is Verdict.FINDING


def test_a_plan_that_is_its_own_control_arm_needs_none() -> None:
    assert decide(but(control=None)).verdict is Verdict.FINDING


def test_a_crash_is_not_held_against_its_control_arm() -> None:
    assert decide(but(oracle=Oracle.HEALTH, moved=None, control=Arm(False))).verdict is Verdict.FINDING


def test_timing_has_to_show_twice() -> None:
    assert decide(but(repeats=Repeats(2, 10), timing=True)).verdict is Verdict.FINDING


def test_on_a_target_with_noise_the_pairs_decide() -> None:
    """A real difference need not exceed the bound each time, and the control arm may exceed it too."""
    larger = but(paired=Paired(wins=20), repeats=Repeats(3, 5), control=Arm(False, delta=3.0))
    assert decide(larger).verdict is Verdict.FINDING


STAND_IN = but(widest=0.9, moved=1.8, paired=Paired(wins=20, stand_in=True))


@pytest.mark.parametrize("timing", [True, False])
def test_a_control_of_other_shapes_does_not_tell_a_difference_from_rounding(timing: bool) -> None:
    """Seen on sound servers: what ran beside others, or was cut back from more, rounds by more than its stand-in."""
    decision = decide(msgspec.structs.replace(STAND_IN, timing=timing))
    assert decision.verdict is Verdict.INCONCLUSIVE
    assert "1.8 against a bound of 0.9" in decision.reason
    small = decide(msgspec.structs.replace(STAND_IN, timing=timing, moved=0.9))
    assert small.verdict is Verdict.CLEAN
    assert "rounds by as much" in small.reason


@pytest.mark.parametrize(
    "but_for",
    [{"moved": 1.9}, {"paired": Paired(wins=20)}],
    ids=["far beyond any rounding", "a control of its own shapes"],
)
def test_it_is_where_that_cannot_be(but_for: dict[str, object]) -> None:
    assert decide(msgspec.structs.replace(STAND_IN, **but_for)).verdict is Verdict.FINDING


def test_pairs_that_tell_no_difference_acquit() -> None:
    """Also where it did not come back: that is how rounding behaves."""
    for repeats in (Repeats(0, 5), Repeats(5, 5)):
        decision = decide(but(paired=Paired(wins=5, losses=5), repeats=repeats))
        assert decision.verdict is Verdict.CLEAN
        assert "rounding: larger than its control arm in 5 of 10 pairs" in decision.reason


def test_pairs_do_not_acquit_a_request_that_is_wrong_alone() -> None:
    assert decide(but(paired=Paired(wins=20), alone=Arm(False))).verdict is Verdict.INCONCLUSIVE


def test_a_request_that_rounds_alone_is_no_suspect() -> None:
    """Another size of micro-batch than the reference's, say: one cold request in some dozens is off by 1e-2."""
    alone = but(paired=Paired(wins=20), alone=Arm(False), moved=0.01)
    assert decide(msgspec.structs.replace(alone, widest=0.01)).verdict is Verdict.CLEAN
    assert decide(msgspec.structs.replace(alone, widest=0.009)).verdict is Verdict.INCONCLUSIVE


FAR = but(widest=0.5, unreached=1.0, moved=1.1)


@pytest.mark.parametrize(
    "paired",
    [
        Paired(wins=6, losses=4, unlawful=6),
        Paired(wins=4, losses=6, unlawful=6),
        Paired(wins=1, losses=5, ties=10),
        Paired(mismatched=10),
    ],
    ids=["lawful reuse is wrong too", "and more so", "few tokens show it", "nothing has its shapes"],
)
def test_what_rounding_comes_nowhere_near_needs_no_pairs(paired: Paired) -> None:
    wrong = msgspec.structs.replace(FAR, paired=paired)
    assert decide(wrong).verdict is Verdict.FINDING
    assert decide(msgspec.structs.replace(wrong, alone=Arm(False))).verdict is Verdict.INCONCLUSIVE
    assert decide(msgspec.structs.replace(wrong, repeats=Repeats(1, 5))).verdict is Verdict.INCONCLUSIVE
    assert decide(msgspec.structs.replace(wrong, moved=0.9)).verdict is not Verdict.FINDING


@pytest.mark.parametrize(("losses", "verdict"), [(6, Verdict.CLEAN), (2, Verdict.INCONCLUSIVE)])
def test_some_controls_that_go_as_far_speak_for_rounding(losses: int, verdict: Verdict) -> None:
    wrong = msgspec.structs.replace(FAR, paired=Paired(wins=4, losses=losses, ties=4, unlawful=2))
    assert decide(wrong).verdict is verdict
