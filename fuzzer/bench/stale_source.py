"""Stale source: how often triage names the step whose state a wrong answer was built on, out of several suspects.

Every plan is drawn so that the donor is known by construction. One prompt is computed in one environment; requests in
other environments follow, some of which ask the same prompt again and so pass its stale state on, some of which share
less of it than is reused in the end, some nothing. The last request then gets the state of the first, through
llama-server's own bug. A plan counts where the server's counts say that it went so: the donor computed all of it, and
whoever asked it in between reused as much of it as the last one did. The plan is not reduced: reduction would take the
other candidates away.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from fuzzer.bench.card import Figure, Part, Setting
from fuzzer.bench.pair_of_servers import pair_of_servers
from fuzzer.differential import Differential, Outcome
from fuzzer.errors import CannotJudge
from fuzzer.options import ServerOptions
from fuzzer.steady_draws import steady_draws
from fuzzer.triage.explain import stale_source
from fuzzer.triage.trials import ONCE
from scenarios.entitlement import entitlements
from scenarios.environment import AdapterScale
from scenarios.operations import Complete
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment, common_prefix

_CASES, _FULL_CASES = 12, 100
_DRAWN_FOR_ONE = 8
_GOAL = 0.95
_ENVIRONMENTS = 3
_SCALES = (0.0, 0.5, 1.0)

Scales = tuple[AdapterScale, ...]


class Named(msgspec.Struct, frozen=True):
    """What triage said of one plan; steps count from 1."""

    donor: int
    named: int | None
    candidates: int
    """Earlier requests that share the first token with the wrong one."""
    environments: int


def measure(setting: Setting) -> Part:
    """Draw plans until enough of them went as constructed, and ask triage for the donor of each."""
    wanted = _FULL_CASES if setting.full else _CASES
    with pair_of_servers(ServerOptions()) as live:
        named: list[Named] = []
        for plan in drawn(setting.seed, wanted * _DRAWN_FOR_ONE):
            if (one := _named(live, plan)) is not None:
                named.append(one)
            if len(named) == wanted:
                break
    if len(named) < wanted:
        raise CannotJudge(f"only {len(named)} of {wanted} plans went as they were constructed: is the bug mended?")
    setting.tell(f"{sum(one.named == one.donor for one in named)} of {wanted} donors named")
    return Part(
        name="stale-source",
        command=setting.command("stale-source"),
        figures=[figure(named)],
        columns=["donor", "named", "candidates", "environments"],
        rows=[[str(one.donor), str(one.named), str(one.candidates), str(one.environments)] for one in named],
    )


def figure(named: Sequence[Named]) -> Figure:
    """The share that was named rightly."""
    right = sum(one.named == one.donor for one in named)
    return Figure(
        what=f"stale source named rightly, {_ENVIRONMENTS} environments or more, not reduced",
        measured=f"{right} of {len(named)}",
        goal=f"at least {_GOAL:.0%}",
        met=right >= _GOAL * len(named),
    )


def drawn(from_seed: int, count: int) -> list[Plan]:
    """Plans of one seed, each once."""
    plans: list[Plan] = []

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @seed(from_seed)
    @given(_plans())
    def collect(plan: Plan) -> None:
        plans.append(plan)

    with steady_draws():
        collect()
    return list(dict.fromkeys(plans))


@st.composite
def _plans(draw: st.DrawFn) -> Plan:
    settings_of = st.tuples(*[st.sampled_from(_SCALES)] * 2)
    donor, last = draw(settings_of), draw(settings_of)
    others = draw(st.lists(settings_of, min_size=1, max_size=4))
    trunk = Segment("a", draw(st.integers(9, 30)))
    prompt = Prompt(0, (trunk,))
    operations = [_ask(Prompt(1, (Segment("b", draw(st.integers(1, 12))),)), draw(settings_of))]
    operations.append(_ask(prompt, donor))
    tail = draw(st.integers(0, 6))
    for number, other in enumerate(others):
        operations.append(_ask(Prompt(2 + number, (Segment("c", draw(st.integers(3, 12))),)), other))
        operations.append(_ask(draw(_askers(trunk, number, tail)), other))
    operations.append(_ask(Prompt(2 + len(others), (Segment("d", draw(st.integers(3, 12))),)), last))
    operations.append(_ask(Prompt(0, (trunk, Segment("e", tail)) if tail else (trunk,)), last))
    return Plan(tuple(operations))


def _askers(trunk: Segment, number: int, tail: int) -> st.SearchStrategy[Prompt]:
    """The donor's prompt, passed on; one that leaves it early; one that shares nothing.

    What is passed on is as long as what the last request reuses, so that nobody but the donor computed any of it.
    """
    own = Segment(f"f{number}", 3)
    passed_on = Prompt(0, (trunk, own) if tail else (trunk,))
    early = st.integers(1, max(1, trunk.length // 5)).map(lambda shared: Prompt(0, (Segment("a", shared), own)))
    return st.one_of(st.just(passed_on), early, st.just(Prompt(2 + number, (Segment("c", 6),))))


def _ask(prompt: Prompt, scales: Sequence[float]) -> Complete:
    spelled: Scales = tuple(AdapterScale(adapter, scale) for adapter, scale in enumerate(scales))
    return Complete(prompt=prompt, scales=spelled, tokens=1)


_DONOR = 1


def _named(live: Differential, plan: Plan) -> Named | None:
    """What triage says; None for a plan that did not go as it was constructed."""
    environments = entitlements(plan)
    wrong = len(plan.operations) - 1
    if len(set(environments)) < _ENVIRONMENTS or environments[_DONOR] == environments[wrong]:
        return None
    outcome = live.run(plan)
    if not _as_constructed(outcome, wrong):
        return None
    source = stale_source(live.run, plan, wrong, outcome, ONCE)
    first = outcome.ours.steps[wrong].prompt[0]
    candidates = sum(step.prompt[:1] == (first,) for step in outcome.ours.steps[:wrong])
    named = None if source is None else source.step + 1
    return Named(_DONOR + 1, named, candidates, len(set(environments)))


def _as_constructed(outcome: Outcome, wrong: int) -> bool:
    """Whether the donor computed all of its prompt, whoever asked it again reused it, and so did the wrong request."""
    steps = outcome.ours.steps
    prompt = steps[_DONOR].prompt
    donor, last = steps[_DONOR].observation, steps[wrong].observation
    if donor is None or last is None or donor.reused or outcome.arm(wrong).clean:
        return False
    prefix = min(len(prompt), len(steps[wrong].prompt) - 1)
    again = [step.observation for step in steps[_DONOR + 1 : wrong] if common_prefix(step.prompt, prompt) >= prefix]
    return last.reused == prefix and all((answer.reused or 0) >= prefix for answer in again if answer is not None)
