"""A sequential test for targets with noise: is a plan's difference larger than its control arm's?

Plan and control arm are run alternately on fresh roots. If only rounding tells them apart, either is as likely to show
the larger difference, whatever the noise looks like, so a gambler who bets on the plan at fair odds does not get rich:
by Ville's inequality the wealth ever reaches 1/alpha with probability at most alpha. The test may therefore be looked
at after every pair and stopped at any time (Shafer, "Testing by betting", JRSS A 184, 2021).
"""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec

FALSE_ALARMS = 0.01
"""Probability that a run on a sound server calls any rounding a finding."""

_STAKES = (0.3, 0.6, 0.9)
"""Shares of the wealth that are bet; the mean over several serves weak and strong effects alike."""
_MOST_PAIRS = 40
_LEAST_PAIRS = 10
_MOST_MISMATCHED = 10
_NOISE = 0.1
"""A gambler who has lost nine tenths is taken to have been wrong."""
_EFFECT = 0.8
"""Share of the pairs in which a stale state that can be told from noise at all shows the larger difference ..."""
_NO_EFFECT = 100.0
"""... and how many times likelier the pairs have to be without one before there is none (Wald's sequential test)."""


class Outcome(StrEnum):
    """What the pairs say so far."""

    FINDING = "finding"
    NOISE = "noise"
    UNDECIDED = "undecided"


class Paired(msgspec.Struct, frozen=True):
    """Pairs so far: how often the plan's difference was the larger one, and how often the control arm's."""

    wins: int = 0
    losses: int = 0
    ties: int = 0
    mismatched: int = 0
    """Pairs whose arms did not reuse and compute the same counts of tokens, so that nothing can be read off them."""
    stand_in: bool = False
    """The control was another plan, of which only the counts of the wrong request are the same."""
    unlawful: int = 0
    """Pairs whose control was beyond any rounding itself, so that it does not show what rounding does."""

    @property
    def pairs(self) -> int:
        """Pairs that were compared."""
        return self.wins + self.losses + self.ties

    @property
    def in_words(self) -> str:
        """How often the plan was the worse one."""
        return f"larger than its control arm in {self.wins} of {self.pairs} pairs"

    @property
    def wealth(self) -> float:
        """What one unit has become, averaged over the stakes."""
        return sum(_wealth(stake, self.wins, self.losses) for stake in _STAKES) / len(_STAKES)

    def with_pair(self, plan: float, control: float, beyond: float = math.inf) -> Paired:
        """The pairs with one more, from the differences of plan and control arm; none is rounding ``beyond`` that."""
        seen = msgspec.structs.replace(self, unlawful=self.unlawful + (control > beyond))
        if plan > control:
            return msgspec.structs.replace(seen, wins=self.wins + 1)
        if plan < control:
            return msgspec.structs.replace(seen, losses=self.losses + 1)
        return msgspec.structs.replace(seen, ties=self.ties + 1)

    def with_mismatch(self) -> Paired:
        """The pairs with one more whose arms are not of one shape."""
        return msgspec.structs.replace(self, mismatched=self.mismatched + 1)

    @property
    def tells(self) -> bool:
        """Whether the control stands for rounding: a bug that lawful reuse shows too makes both arms wrong."""
        return 2 * self.unlawful <= self.pairs

    @property
    def unopposed(self) -> bool:
        """Whether no control speaks for rounding that goes as far: none was so far off, or most were, by the bug."""
        return self.unlawful == 0 or not self.tells

    def outcome(self, alpha: float) -> Outcome:
        """Finding at a false-alarm rate of ``alpha``, noise, or neither."""
        if self.wealth >= 1 / alpha:
            return Outcome.FINDING
        if not self.tells:
            return Outcome.UNDECIDED
        if self.pairs >= _LEAST_PAIRS and (self.wealth <= _NOISE or self.wins <= self.losses):
            return Outcome.NOISE
        if self._without_effect >= _NO_EFFECT:
            return Outcome.NOISE
        return Outcome.UNDECIDED

    @property
    def _without_effect(self) -> float:
        """How many times likelier the pairs are where nothing but rounding tells the arms apart."""
        even = math.log(0.5)
        return math.exp(self.wins * (even - math.log(_EFFECT)) + self.losses * (even - math.log1p(-_EFFECT)))

    @property
    def exhausted(self) -> bool:
        """Whether no more pairs are worth running."""
        told_nothing = self.pairs >= _LEAST_PAIRS and not self.tells
        return self.pairs >= _MOST_PAIRS or self.mismatched >= _MOST_MISMATCHED or told_nothing


def alpha_of(suspect: int) -> float:
    """The false-alarm rate that suspect number ``suspect`` (from 1) may spend; all of them sum to the run's."""
    return FALSE_ALARMS * 6 / (math.pi * suspect) ** 2


class Allowance:
    """What a run may still spend of its false-alarm rate: each suspect takes less than the one before."""

    def __init__(self) -> None:
        self._suspects = 0

    def take(self) -> float:
        """The false-alarm rate of the next suspect."""
        self._suspects += 1
        return alpha_of(self._suspects)


def _wealth(stake: float, wins: int, losses: int) -> float:
    return math.exp(wins * math.log1p(stake) + losses * math.log1p(-stake))
