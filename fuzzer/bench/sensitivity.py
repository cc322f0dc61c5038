"""Sensitivity: the smallest step of an adapter's scale that is still told from rounding, by numerics and model.

The step is planted through llama-server's own bug: a prompt at scale a, another prompt, the first again at a + step.
The entry that comes back from the RAM cache holds the state of scale a. Whether that is a finding is for the same
judgement to say that a run uses: the bound, and on targets with noise the pairs of plan and control arm.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from fuzzer.bench.card import Figure, Part, Plot, Series, Setting
from fuzzer.bench.pair_of_servers import pair_of_servers
from fuzzer.bench.smollm2 import ONE_THREAD, random_lora, smollm2
from fuzzer.calibration import CEILING, Numerics, recalibrate
from fuzzer.differential import Differential, Outcome
from fuzzer.options import ServerOptions
from fuzzer.triage.paired import run_pairs
from oracles.accounting import reusable
from oracles.judgement import judge
from oracles.sequential import FALSE_ALARMS
from oracles.sequential import Outcome as Pairs
from scenarios.environment import AdapterScale
from scenarios.operations import Complete
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment

STEPS = (1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.2, 1.0)
_QUICK_STEPS = (1e-4, 1e-2, 1.0)
_QUICK_CASES, _CASES = 4, 20
_GOALS = {Numerics.EXACT: 1e-4, Numerics.DEFAULT: 1e-2}
_WRONG = 2
_LENGTHS = (6, 9, 14, 20, 33)


class Case(msgspec.Struct, frozen=True):
    """One planted step."""

    reused: bool
    delta: float
    told: bool
    """Whether comparing answers makes it a finding."""
    accounted: bool
    """Whether reuse accounting objects to the hit."""


class Curve(msgspec.Struct, frozen=True):
    """The cases of one model under one numerics."""

    model: str
    numerics: Numerics
    cases: dict[float, list[Case]]

    @property
    def name(self) -> str:
        """What a legend calls it."""
        return f"{self.model}, {self.numerics} numerics"

    def share(self, step: float) -> float:
        """Of the planted steps of this size that were reused, the share that was found."""
        hit = [case for case in self.cases[step] if case.reused]
        return sum(case.told for case in hit) / len(hit) if hit else 0.0

    def median(self, step: float) -> float:
        """Median |delta logprob|."""
        return statistics.median(case.delta for case in self.cases[step])

    @property
    def smallest(self) -> float | None:
        """The smallest step from which on nine of ten are found."""
        found = None
        for step in sorted(self.cases, reverse=True):
            if self.share(step) < 0.9:
                break
            found = step
        return found


def measure(setting: Setting) -> Part:
    """Plant steps of each size and ask whether they are found."""
    curves = []
    for model, numerics in _targets(setting):
        with _servers(setting, model, numerics) as live:
            curves.append(_curve(live, model, numerics, setting))
        setting.tell(f"{curves[-1].name}: smallest step found {curves[-1].smallest}")
    return Part(
        name="sensitivity",
        command=setting.command("sensitivity"),
        figures=[figure for curve in curves for figure in figures(curve)],
        columns=["model", "numerics", "step", "planted", "reused", "found", "by accounting", "median |delta|"],
        rows=[row for curve in curves for row in _rows(curve)],
        plots=_plots(curves),
    )


def planted(scale: float, step: float, case: int, adapters: int) -> Plan:
    """A prompt at a scale, another prompt, the first again at a scale a step further."""
    length = _LENGTHS[case % len(_LENGTHS)]
    prompt, other = Prompt(0, (Segment("a", length), Segment("n", case))), Prompt(1, (Segment("b", length + 3),))
    first, second = _spelled(scale, adapters), _spelled(scale + step, adapters)
    return Plan(
        (
            Complete(prompt=prompt, scales=first, tokens=1),
            Complete(prompt=other, scales=second, tokens=1),
            Complete(prompt=prompt, scales=second, tokens=4),
        )
    )


def figures(curve: Curve) -> list[Figure]:
    """The goals that this curve has to meet."""
    cases = [case for of_step in curve.cases.values() for case in of_step if case.reused]
    accounted = sum(case.accounted for case in cases)
    goal = _GOALS[curve.numerics] if curve.model.startswith("tiny") else None
    smallest = curve.smallest
    return [
        Figure(
            what=f"smallest stale scale step found by comparing answers: {curve.name}",
            measured="none" if smallest is None else f"{smallest:g}",
            goal="" if goal is None else f"at most {goal:g}",
            met=None if goal is None else smallest is not None and smallest <= goal,
        ),
        Figure(
            what=f"stale steps of any size flagged by reuse accounting: {curve.name}",
            measured=f"{accounted} of {len(cases)}",
            goal="all",
            met=bool(cases) and accounted == len(cases),
        ),
    ]


def _targets(setting: Setting) -> list[tuple[str, Numerics]]:
    tiny = [(f"tiny {name}", numerics) for name in ("dense", "swa") for numerics in Numerics]
    real = [("SmolLM2-135M Q4_1", Numerics.DEFAULT)] if setting.full and smollm2() is not None else []
    return [*tiny, *real] if setting.full else tiny[:2]


@contextmanager
def _servers(setting: Setting, model: str, numerics: Numerics) -> Iterator[Differential]:
    path = smollm2()
    if model.startswith("tiny"):
        options = ServerOptions(tiny=model.split()[1], numerics=numerics, server_flags=ONE_THREAD)
    else:
        assert path is not None
        adapter = str(random_lora(path, setting.folder, seed=setting.seed))
        options = ServerOptions(model=path, adapters=(adapter,), numerics=numerics, server_flags=ONE_THREAD)
    with pair_of_servers(options) as live:
        yield live


def _curve(live: Differential, model: str, numerics: Numerics, setting: Setting) -> Curve:
    steps = STEPS if setting.full else _QUICK_STEPS
    count = _CASES if setting.full and model.startswith("tiny") else _QUICK_CASES
    cases = {step: [_case(live, numerics, step, case) for case in range(count)] for step in steps}
    return Curve(model, numerics, cases)


def _case(live: Differential, numerics: Numerics, step: float, case: int) -> Case:
    adapters = live.target.server.capabilities.adapters
    outcome = live.run(planted(0.0 if case % 2 else 0.5, step, case, adapters))
    arm = outcome.arm(_WRONG)
    allowed = reusable(outcome.ours, _WRONG)
    accounted = allowed is not None and (arm.reused or 0) > allowed
    return Case(bool(arm.reused), arm.delta or 0.0, _told(live, numerics, outcome), accounted)


def _told(live: Differential, numerics: Numerics, outcome: Outcome) -> bool:
    """Whether the answer is beyond rounding as a run sees it: measured in its own shapes, and pair by pair."""
    if not _suspect(live, outcome):
        return False
    arm, before = outcome.arm(_WRONG), live.noise
    if (arm.delta or 0.0) <= CEILING[numerics]:
        live.noise = recalibrate(live, outcome.plan, _WRONG)
    try:
        if not _suspect(live, outcome):
            return False
        if numerics is Numerics.EXACT:
            return True
        pairs = run_pairs(live, outcome.plan, _WRONG, arm.reused, FALSE_ALARMS, lambda: False)
        return pairs.outcome(FALSE_ALARMS) is Pairs.FINDING
    finally:
        live.noise = before


def _suspect(live: Differential, outcome: Outcome) -> bool:
    suspects = judge(outcome.ours, outcome.theirs, live.noise, accounting=False)
    return any(suspect.step == _WRONG for suspect in suspects)


def _spelled(scale: float, adapters: int) -> tuple[AdapterScale, ...]:
    return tuple(AdapterScale(adapter, scale if adapter == 0 else 0.0) for adapter in range(adapters))


def _rows(curve: Curve) -> Iterator[list[str]]:
    for step, cases in curve.cases.items():
        told = [sum(column) for column in ([case.reused for case in cases], [case.told for case in cases])]
        counts = [len(cases), *told, sum(case.accounted for case in cases)]
        yield [curve.model, str(curve.numerics), f"{step:g}", *map(str, counts), f"{curve.median(step):.2g}"]


def _plots(curves: Sequence[Curve]) -> list[Plot]:
    return [
        Plot(
            name="sensitivity",
            title="Stale scale steps told from rounding",
            x="step of the adapter's scale",
            y="share found by comparing answers",
            series=[Series(curve.name, [(step, curve.share(step)) for step in curve.cases]) for curve in curves],
            log_x=True,
        ),
        Plot(
            name="sensitivity-delta",
            title="What a stale scale step does",
            x="step of the adapter's scale",
            y="median |delta logprob|, nats",
            series=[Series(curve.name, _positive(curve)) for curve in curves],
            log_x=True,
            log_y=True,
        ),
    ]


def _positive(curve: Curve) -> list[tuple[float, float]]:
    """What a logarithmic axis can show."""
    points = [(step, curve.median(step)) for step in curve.cases]
    return [point for point in points if point[1] > 0]
