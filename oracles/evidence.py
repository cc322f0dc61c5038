"""Evidence: what separates a finding from a suspect, and what each kind of oracle needs of it.

A wrong answer is a finding when it comes back from fresh state, is right when the request runs without its history,
and is right in the control arm, where the same tokens are reused lawfully. A cache hit, or a right answer with the
cache bypassed, tells *what kind* of finding it is; neither is asked for, since a recycled slot needs no hit.
"""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec

from oracles.judgement import Oracle
from oracles.sequential import FALSE_ALARMS, Outcome, Paired

_TIMES = 2
"""Runs in which a divergence that hangs on timing has to come back."""
BEYOND = 2
"""How many times the widest bound a difference has to exceed where no control of its own shapes can be had: four times
the largest rounding that was seen, at least."""


class Verdict(StrEnum):
    """Three values; unknown is never rounded to clean."""

    CLEAN = "clean"
    FINDING = "finding"
    INCONCLUSIVE = "inconclusive"


class Arm(msgspec.Struct, frozen=True):
    """One variant of a minimal plan, run to see whether the wrong request is right there."""

    clean: bool
    reused: int | None = None
    computed: int | None = None
    delta: float | None = None
    """How far rounding would have to move a logprob to explain the answer."""


class Repeats(msgspec.Struct, frozen=True):
    """``k`` of ``n`` runs from fresh state showed the divergence."""

    k: int
    n: int


class Others(msgspec.Struct, frozen=True):
    """Whether others sent requests to the server, or changed what it is set to, while the evidence was gathered."""

    requests: bool = False
    changes: bool = False


class Evidence(msgspec.Struct, frozen=True):
    """What the runs on fresh state gave."""

    oracle: Oracle
    repeats: Repeats
    moved: float | None
    """How far rounding would have to move a logprob to explain the wrong answer."""
    alone: Arm
    """The wrong request without its history."""
    control: Arm | None
    """The same plan with every earlier environment set to the request's own; None where that is the plan itself."""
    bypass: Arm | None = None
    """The same plan, every request told to skip the cache."""
    respelled: Arm | None = None
    """The wrong request alone, naming each adapter explicitly; asked where alone it is wrong too."""
    paired: Paired | None = None
    """Plan against control arm on a target with noise; None where the bound alone decides."""
    alpha: float = FALSE_ALARMS
    """The false-alarm rate that the pairs may spend."""
    timing: bool = False
    """The plan has requests side by side, so that it need not show the divergence each time."""
    reused: int | None = None
    others: Others = Others()
    widest: float = 0.0
    """The widest bound of any class ..."""
    unreached: float = math.inf
    """... and what rounding comes nowhere near."""

    @property
    def beyond_rounding(self) -> bool:
        """Whether a difference is so large that no pairs are needed, and none speaks against it.

        A bug that shows with few tokens only, or with lawful reuse too, wins no pairs.
        """
        return self.paired is None or (self.moved is not None and self.moved > self.unreached and self.paired.unopposed)


class Decision(msgspec.Struct, frozen=True):
    """What the evidence allows to say, and why where that is less than a finding."""

    verdict: Verdict
    reason: str = ""


def decide(evidence: Evidence) -> Decision:
    """Whether the evidence makes a finding."""
    repeats, paired = evidence.repeats, evidence.paired
    if evidence.others.changes:
        return Decision(Verdict.INCONCLUSIVE, "somebody else changed scales or adapters of the server meanwhile")
    if evidence.others.requests and evidence.timing:
        return Decision(Verdict.INCONCLUSIVE, "it hangs on timing, and somebody else's requests ran beside it")
    if not evidence.beyond_rounding and paired is not None and paired.outcome(evidence.alpha) is Outcome.NOISE:
        return Decision(Verdict.CLEAN, f"rounding: {paired.in_words}")
    unsure = paired is not None and (paired.stand_in or not evidence.alone.clean)
    if unsure and could_be_rounding(evidence.moved, evidence.widest):
        return Decision(Verdict.CLEAN, "lawful computation rounds by as much in other shapes")
    if repeats.k == 0:
        return Decision(Verdict.INCONCLUSIVE, f"did not come back from fresh state (0 of {repeats.n})")
    if not evidence.alone.clean and evidence.respelled is not None and evidence.respelled.clean:
        return _recurs(evidence)
    if not evidence.alone.clean:
        return Decision(Verdict.INCONCLUSIVE, "the request alone differs from the reference too: not its history")
    if evidence.oracle in (Oracle.HEALTH, Oracle.ACCOUNTING):
        return _recurs(evidence)
    if paired is not None:
        if evidence.beyond_rounding:
            return _recurs(evidence)
        if paired.outcome(evidence.alpha) is not Outcome.FINDING:
            return _open(paired)
        return _of_other_shapes(evidence) if paired.stand_in else _recurs(evidence)
    if evidence.control is not None and not evidence.control.clean and not _larger(evidence):
        return Decision(Verdict.INCONCLUSIVE, "the control arm, where reuse is lawful, differs by as much")
    return _recurs(evidence)


def could_be_rounding(moved: float | None, widest: float) -> bool:
    """Whether a difference is within what lawful computation gives in any shape.

    Where no control has the plan's own shapes, pairs cannot tell it from rounding: what was computed in a longer
    batch, cut back, moved to another slot or asked beside others rounds in another way, each time.
    """
    return moved is not None and moved <= widest


def _of_other_shapes(evidence: Evidence) -> Decision:
    """A finding only where the difference is far beyond what any lawful computation gave."""
    if could_be_rounding(evidence.moved, BEYOND * evidence.widest):
        return Decision(
            Verdict.INCONCLUSIVE,
            f"no lawful plan computes in its shapes, which may round by more than any did ({evidence.moved:.2g} "
            f"against a bound of {evidence.widest:.2g}); try --numerics exact",
        )
    return _recurs(evidence)


def _open(paired: Paired) -> Decision:
    if paired.mismatched > paired.pairs:
        return Decision(Verdict.INCONCLUSIVE, "no lawful run reuses and computes as many tokens to compare it with")
    return Decision(
        Verdict.INCONCLUSIVE, f"the noise of this target leaves it open: {paired.in_words}; try --numerics exact"
    )


def _recurs(evidence: Evidence) -> Decision:
    repeats = evidence.repeats
    # Where timing or noise decides, a real difference need not exceed the bound each time.
    if evidence.timing or evidence.paired is not None:
        enough = min(_TIMES, repeats.n)
        return _verdict(repeats.k >= enough, f"came back in {repeats.k} of {repeats.n} runs only")
    return _verdict(repeats.k == repeats.n, f"came back in {repeats.k} of {repeats.n} serial runs only")


def _verdict(shown: bool, otherwise: str) -> Decision:
    return Decision(Verdict.FINDING) if shown else Decision(Verdict.INCONCLUSIVE, otherwise)


def _larger(evidence: Evidence) -> bool:
    control = evidence.control
    if control is None or control.delta is None or evidence.moved is None:
        return False
    return evidence.moved > 8 * control.delta


def reuse_witnessed(evidence: Evidence) -> bool:
    """Whether the server says that the wrong answer was built on reused tokens."""
    return bool(evidence.reused)
