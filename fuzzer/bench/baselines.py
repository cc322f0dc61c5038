"""Baselines that the fuzzer must beat: the same servers, executor and oracles, but plans drawn with less thought.

A baseline's score is its first confirmed suspect: one that diverges again when its plan runs on fresh roots. It needs
to be neither reduced nor explained.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from fuzzer.bench.card import Figure, Part, Plot, Setting
from fuzzer.bench.ecdf import ecdf
from fuzzer.bench.mutation import chosen, median, servers_of, shown
from fuzzer.bench.pair_of_servers import pair_of_servers
from fuzzer.bench.uniform import uniform_plans
from fuzzer.clock import Clock
from fuzzer.differential import Differential, Outcome, Pending
from fuzzer.options import ServerOptions
from fuzzer.zoo.mutants import Mutant
from scenarios.capabilities import Capabilities
from scenarios.library.public_shapes import public_shapes
from scenarios.plans import Plan

Baseline = Callable[[Capabilities, random.Random], Iterator[Plan]]
"""Plans without end for a server."""

BASELINES: dict[str, Baseline] = {
    "random": uniform_plans,
    "script": lambda capabilities, rng: public_shapes(capabilities),
}
"""Uniformly random sequences; the shapes of public reports, at one length after another."""


class Reached(msgspec.Struct, frozen=True):
    """When a baseline had its first confirmed suspect, and after how many requests to the target; None: never."""

    seconds: float | None = None
    requests: int | None = None


def measure(setting: Setting) -> Part:
    """Each mutant against each baseline, in the time that the campaign gets for it."""
    mutants = chosen(setting)
    reached: dict[str, list[Reached]] = {name: [] for name in BASELINES}
    for mutant in mutants:
        for name, baseline in BASELINES.items():
            found = search(baseline, servers_of(mutant), time_s=setting.time_s, seed=setting.seed)
            reached[name].append(found)
            setting.tell(f"{mutant.name}, {_IN_WORDS[name]}: {shown(found.seconds, ' s')}")
    columns = [f"{name}, {unit}" for name in BASELINES for unit in ("s", "requests")]
    return Part(
        name="baselines",
        command=setting.command("baselines"),
        figures=[_figure(name, each, setting.time_s) for name, each in reached.items()],
        columns=["mutant", "kind", *columns],
        rows=[_row(mutant, [each[at] for each in reached.values()]) for at, mutant in enumerate(mutants)],
        plots=[_plot(reached)],
    )


_IN_WORDS = {"random": "uniformly random sequences", "script": "a fixed script of public reproducers"}


def _figure(name: str, reached: Sequence[Reached], time_s: float) -> Figure:
    count = sum(1 for one in reached if one.seconds is not None)
    typical = shown(median([one.seconds for one in reached]), " s")
    return Figure(
        what=f"planted bugs that {_IN_WORDS[name]} reach within {time_s:g} s each, unreduced",
        measured=f"{count} of {len(reached)}, median of those reached {typical}",
    )


def _row(mutant: Mutant, reached: Sequence[Reached]) -> list[str]:
    return [mutant.name, mutant.kind, *(shown(value) for one in reached for value in (one.seconds, one.requests))]


def _plot(reached: dict[str, list[Reached]]) -> Plot:
    return Plot(
        name="baselines",
        title="Planted bugs reached over time without the fuzzer's generation",
        x="seconds from the start of the servers",
        y="share of the planted bugs",
        series=[ecdf(_IN_WORDS[name], [one.seconds for one in each]) for name, each in reached.items()],
        log_x=True,
    )


def search(baseline: Baseline, servers: ServerOptions, *, time_s: float, seed: int) -> Reached:
    """Run the plans of a baseline until one is wrong twice, or time is up; the start of the servers counts."""
    clock = Clock(time_s)
    with pair_of_servers(servers) as differential:
        plans = baseline(differential.target.server.capabilities, random.Random(seed))
        for outcome in _outcomes(differential, plans):
            if clock.over():
                break
            if outcome.suspects and differential.run(outcome.plan).suspects:
                return Reached(round(clock.elapsed(), 3), differential.counts.target)
    return Reached()


def _outcomes(differential: Differential, plans: Iterable[Plan]) -> Iterator[Outcome]:
    """Each plan judged while the target is at the next one, as in a campaign."""
    before: Pending | None = None
    for plan in plans:
        begun = differential.begin(plan)
        if before is not None:
            yield before.outcome()
        before = begun
