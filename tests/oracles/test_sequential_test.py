"""The sequential test: it rarely calls noise a finding, whenever one looks, and finds what is clearly larger."""

from __future__ import annotations

import random

from oracles.sequential import FALSE_ALARMS, Outcome, Paired, alpha_of


def pairs(rng: random.Random, larger: float) -> Paired:
    """Pairs in which the plan is the larger one with probability ``larger``, up to a decision."""
    paired = Paired()
    while paired.outcome(FALSE_ALARMS) is Outcome.UNDECIDED and not paired.exhausted:
        paired = paired.with_pair(*((1.0, 0.0) if rng.random() < larger else (0.0, 1.0)))
    return paired


def test_a_plan_that_always_shows_more_is_a_finding_within_a_dozen_pairs() -> None:
    paired = pairs(random.Random(0), larger=1.0)
    assert paired.outcome(FALSE_ALARMS) is Outcome.FINDING
    assert paired.pairs <= 12


def test_noise_is_called_a_finding_no_more_often_than_stated() -> None:
    """With fair pairs, looked at after each: 4,000 runs, fewer than twice the stated share of alarms."""
    rng = random.Random(1)
    alarms = sum(pairs(rng, larger=0.5).outcome(FALSE_ALARMS) is Outcome.FINDING for _ in range(4000))
    assert alarms < 2 * FALSE_ALARMS * 4000


def test_noise_is_mostly_told_to_be_noise() -> None:
    rng = random.Random(2)
    outcomes = [pairs(rng, larger=0.5).outcome(FALSE_ALARMS) for _ in range(500)]
    assert outcomes.count(Outcome.NOISE) > 450
    assert outcomes.count(Outcome.FINDING) <= 500 * 2 * FALSE_ALARMS


def test_an_effect_in_four_of_five_pairs_is_rarely_told_to_be_noise() -> None:
    rng = random.Random(3)
    outcomes = [pairs(rng, larger=0.8).outcome(FALSE_ALARMS) for _ in range(500)]
    assert outcomes.count(Outcome.NOISE) <= 30
    assert outcomes.count(Outcome.FINDING) > 350


def test_ties_decide_nothing_in_favour_of_a_finding() -> None:
    paired = Paired()
    for _ in range(40):
        paired = paired.with_pair(0.0, 0.0)
    assert paired.outcome(FALSE_ALARMS) is Outcome.NOISE


def test_the_false_alarm_rate_of_a_run_is_spent_over_its_suspects() -> None:
    assert sum(alpha_of(number) for number in range(1, 10_000)) <= FALSE_ALARMS


def test_arms_of_different_shapes_are_no_evidence_and_end_the_test() -> None:
    paired = Paired()
    while not paired.exhausted:
        paired = paired.with_mismatch()
    assert (paired.pairs, paired.wealth) == (0, 1.0)
    assert paired.outcome(FALSE_ALARMS) is Outcome.UNDECIDED


def test_a_control_beyond_any_rounding_is_no_yardstick() -> None:
    paired = Paired()
    for _ in range(10):
        paired = paired.with_pair(1.0, 2.0, beyond=1.5)
    assert not paired.tells
    assert paired.outcome(FALSE_ALARMS) is Outcome.UNDECIDED
    assert paired.exhausted
    assert Paired(losses=9).with_pair(1.0, 2.0, beyond=1.5).outcome(FALSE_ALARMS) is Outcome.NOISE
