"""Calibration: is the reference the same computation as the target, and how far may legal computation move it?

The yardstick comes from the reference, which reuses nothing: a token computed while decoding and the same token
computed in one piece with its prompt are the same by law and differ by rounding. What the target does lawfully is
measured too, class by class, but only as far as it stays near that yardstick: a target whose lawful reuse is wrong must
not teach us that wrong is normal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from statistics import median_low

import msgspec

from fuzzer.differential import Differential, Outcome, Pending
from fuzzer.errors import CannotJudge
from fuzzer.execution import Asked, asked_in
from fuzzer.lawful import calibration_plans, check_plan, environments, further_plans, plans_like
from oracles.bands import Deltas
from oracles.comparison import apart, compare
from oracles.judgement import is_whole, legal_differences
from oracles.noise import CAP, LEAST, SAFETY, Noise, Situation, Tail, measured, safe
from oracles.observations import Done, Failure, Observation, Position
from scenarios.environment import AdapterScale, adapter_letter
from scenarios.operations import Complete
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment

_REPEATS = 4
_SHOWN = 5
"""Tokens that have to have moved by more than the least bound, for rounding to be known."""
_DECODED = 3
"""Tokens of an answer that are computed again in one piece."""


class Numerics(StrEnum):
    """How the target computes."""

    EXACT = "exact"
    """Launched to be as bit-exact as the engine can be."""
    DEFAULT = "default"


CEILING = {Numerics.EXACT: 1e-2, Numerics.DEFAULT: CAP}
"""Two servers that differ by more when cold are not the same computation, and no suspect beyond is called rounding.

Measured on llama-server: 4e-5 at most in exact numerics, 0.44 on a quantised model in default ones.
"""


class Calibration(msgspec.Struct, frozen=True):
    """What was measured before fuzzing."""

    noise: Noise
    hits: int
    """Requests that the target answered with reused tokens."""
    silent_adapters: tuple[int, ...]
    """Adapters that move the logprobs by no more than the bound: to be judged by reuse accounting only."""
    measured: str = ""
    """The day on which the bounds were measured, where they were kept from an earlier command."""


def calibrate(
    differential: Differential, numerics: Numerics, checkpoint: Callable[[], None] = lambda: None
) -> Calibration:
    """Run lawful plans in every environment; raises CannotJudge where target and reference are not alike.

    ``checkpoint`` is called between plans and may raise to leave.
    """
    capabilities = differential.target.server.capabilities
    plans = [calibration_plans(capabilities, scales) for scales in environments(capabilities)]
    firsts = [first for first, *_ in plans]
    outcomes: list[Outcome] = []
    decoded: list[_Decoded] = []
    for outcome in _run_through(differential, chain.from_iterable(plans), checkpoint):
        outcomes.append(outcome)
        decoded += [_Decoded(differential, outcome)] if outcome.plan in firsts else []
    rounding = [deltas for one in decoded for deltas in one.rounding()]
    if numerics is not Numerics.EXACT:
        unread = [outcome for outcome in outcomes if outcome.plan not in firsts]
        more = chain(unread, _further(differential, outcomes))
        rounding += _rare_rounding(differential, more, rounding, checkpoint)
    told = [legal_differences(outcome.ours, outcome.theirs) for outcome in outcomes]
    _check_cold(outcomes, told, CEILING[numerics])
    samples = list(chain.from_iterable(told))
    near = _near(samples, rounding)
    noise = measured([*near, *((Situation(Tail.ONE), deltas) for deltas in rounding)])
    return Calibration(
        noise=noise,
        hits=sum(outcome.ours.hits for outcome in outcomes),
        silent_adapters=_silent_adapters(differential, noise),
    )


def _run_through(
    differential: Differential, plans: Iterable[Plan], checkpoint: Callable[[], None]
) -> Iterator[Outcome]:
    """Outcomes of plans, each of which runs while the reference still answers the one before it."""
    before: Pending | None = None
    for plan in plans:
        pending = differential.begin(plan)
        checkpoint()
        if before is not None:
            yield before.outcome()
        before = pending
    if before is not None:
        yield before.outcome()


def _rare_rounding(
    differential: Differential, outcomes: Iterable[Outcome], seen: Sequence[Deltas], checkpoint: Callable[[], None]
) -> list[Deltas]:
    """More of the reference's rounding, from one outcome after another until some of it shows.

    Where numbers are kept in 16 bits, one request in some dozens is off by a thousand times what the others are.
    """
    more: list[Deltas] = []
    for outcome in outcomes:
        if sum(max(deltas) > LEAST for deltas in (*seen, *more)) >= _SHOWN:
            break
        more += _reference_rounding(differential, outcome)
        checkpoint()
    return more


def _further(differential: Differential, outcomes: list[Outcome]) -> Iterator[Outcome]:
    """Those of further plans, run when they are asked for; ``outcomes`` gets them too."""
    for plan in further_plans(differential.target.server.capabilities):
        outcomes.append(differential.run(plan))
        yield outcomes[-1]


def check(
    differential: Differential, numerics: Numerics, noise: Noise, checkpoint: Callable[[], None] = lambda: None
) -> Calibration | None:
    """Bounds kept from an earlier command, once a few lawful requests agree with them; None where they do not.

    They must stay within its bounds, and must not be so much quieter that the bounds could be somebody else's: those
    that a calibration of a target this quiet gives are at most ``SAFETY`` times the rounding that it sees, which may
    be ``SAFETY`` times what these few show. Raises CannotJudge where target and reference are not alike.
    """
    spellings = environments(differential.target.server.capabilities)
    outcomes: list[Outcome] = []
    decoded: list[_Decoded] = []
    for outcome in _run_through(differential, map(check_plan, spellings), checkpoint):
        outcomes.append(outcome)
        decoded.append(_Decoded(differential, outcome))
    told = [legal_differences(outcome.ours, outcome.theirs) for outcome in outcomes]
    _check_cold(outcomes, told, CEILING[numerics])
    samples = list(chain.from_iterable(told))
    rounding = [deltas for one in decoded for deltas in one.rounding()]
    samples += [(Situation(Tail.ONE), deltas) for deltas in rounding]
    widest = SAFETY * safe(max((max(deltas) for deltas in rounding), default=0.0))
    if noise.largest > widest or any(max(deltas) > noise.bound(situation) for situation, deltas in samples):
        return None
    return Calibration(
        noise=noise,
        hits=sum(outcome.ours.hits for outcome in outcomes),
        silent_adapters=_silent_adapters(differential, noise),
    )


def recalibrate(differential: Differential, plan: Plan, step: int) -> Noise:
    """The noise with samples taken in the very shapes and environment of one request of a plan.

    Rounding grows with what is computed: a strong adapter, an uncertain token. Before a small difference is called a
    suspect, the same prefix and tails are computed lawfully on fresh roots, alone and beside others.
    """
    outcomes = [differential.run(lawful) for lawful in plans_like(plan, step) for _ in range(_REPEATS)]
    rounding = [deltas for outcome in outcomes[:_REPEATS] for deltas in _reference_rounding(differential, outcome)]
    samples = [sample for outcome in outcomes for sample in legal_differences(outcome.ours, outcome.theirs)]
    decoded = ((Situation(Tail.ONE), deltas) for deltas in rounding)
    return differential.noise.widened([*_near(samples, rounding), *decoded])


def _near(samples: list[tuple[Situation, Deltas]], rounding: Sequence[Deltas]) -> list[tuple[Situation, Deltas]]:
    """The samples of the target that are no further apart than rounding on the reference explains."""
    limit = safe(max((max(deltas) for deltas in rounding), default=0.0))
    return [(situation, deltas) for situation, deltas in samples if max(deltas) <= limit]


class _Decoded:
    """Tokens decoded by the reference, and the same tokens computed in one piece, which it is asked for at once."""

    def __init__(self, differential: Differential, outcome: Outcome) -> None:
        self._positions: list[Position] = []
        grown: list[Asked] = []
        for asked, step in zip(asked_in(outcome.ours), outcome.theirs.steps, strict=False):
            answer = step.outcome
            if asked is None or not isinstance(answer, Observation) or not is_whole(answer, asked.tokens):
                continue
            for count in range(1, min(len(answer.positions), _DECODED)):
                prompt = asked.prompt + answer.tokens[:count]
                grown.append(msgspec.structs.replace(asked, prompt=prompt, tokens=1))
                self._positions.append(answer.positions[count])
        self._whole = differential.ask_reference(grown)

    def rounding(self) -> list[Deltas]:
        """How far the ones are from the others."""
        return [
            apart(position.top, step.outcome.positions[0].top)
            for position, step in zip(self._positions, self._whole.result().steps, strict=False)
            if isinstance(step.outcome, Observation) and step.outcome.positions
        ]


def _reference_rounding(differential: Differential, outcome: Outcome) -> list[Deltas]:
    """How far tokens decoded by the reference are from the same tokens computed with their prompt."""
    return _Decoded(differential, outcome).rounding()


def _check_cold(outcomes: list[Outcome], told: list[list[tuple[Situation, Deltas]]], ceiling: float) -> None:
    """Raises CannotJudge where most cold requests of some environment differ; ``told`` are the samples of each outcome.

    Where some do, it is the same computation, of which something is wrong: that is what is looked for.
    """
    cold: dict[tuple[AdapterScale, ...] | None, list[float]] = {}
    for outcome, samples in zip(outcomes, told, strict=True):
        first = outcome.plan.operations[0]
        assert isinstance(first, Complete)
        for situation, deltas in samples:
            if situation == Situation(Tail.COLD):
                cold.setdefault(first.scales, []).append(max(deltas))
    refused = next((step.outcome for outcome in outcomes for step in outcome.ours.steps), None)
    if not any(told) and isinstance(refused, Failure):
        raise CannotJudge(f"the target refuses plain requests: {refused.reason}")
    most = max((median_low(deltas) for deltas in cold.values()), default=0.0)
    if most > ceiling:
        raise CannotJudge(
            f"target and reference differ by {most:.2g} on a request that neither has seen: not the same model, "
            "adapters or numerics"
        )


def _silent_adapters(differential: Differential, noise: Noise) -> tuple[int, ...]:
    capabilities = differential.target.server.capabilities
    prompt = Prompt(0, (Segment("a", 20),))
    spellings = environments(capabilities)
    plan = Plan(tuple(Complete(prompt=prompt, scales=scales, tokens=4) for scales in spellings))
    answers = [step.outcome for step in differential.run(plan).theirs.steps]
    bound = noise.bound()
    single = answers[1 : 1 + capabilities.adapters]
    return tuple(adapter for adapter, answer in enumerate(single) if _delta(answers[0], answer) <= bound)


def _delta(one: Observation | Failure | Done, other: Observation | Failure | Done) -> float:
    if isinstance(one, Observation) and isinstance(other, Observation):
        return compare(one, other).delta
    return 0.0


def in_words(adapters: tuple[int, ...]) -> str:
    """``adapter a``, ``adapters a and b``."""
    letters = [adapter_letter(adapter) for adapter in adapters]
    return f"adapter {letters[0]}" if len(letters) == 1 else f"adapters {' and '.join(letters)}"
