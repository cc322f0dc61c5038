"""A campaign opens with the shapes of public reports: each that the server can run, at lengths of the seed's."""

from __future__ import annotations

import random

from making import SPACE

from fuzzer.bench.pair_of_servers import bench
from fuzzer.campaign import Exploration
from fuzzer.differential import Pending
from fuzzer.opening import Known, Opening
from fuzzer.options import ServerOptions
from scenarios.capabilities import Capabilities
from scenarios.library import adapter_scale, conversation, saved_slots
from scenarios.library.catalogue import SCENARIOS, by_name
from scenarios.library.public_shapes import LENGTHS, SHAPES
from scenarios.operations import KINDS, Sampling
from scenarios.plans import Plan, requests
from scenarios.soundness import unsound

CAN_ALL = Capabilities(
    SPACE,
    4096,
    operations=KINDS,
    slots=4,
    adapters=2,
    request_scales=True,
    pins=True,
    salts=True,
    samplings=tuple(Sampling),
)
MINE = [adapter_scale.SCENARIO, conversation.SCENARIO]


def drawn(opening: Opening, capabilities: Capabilities = CAN_ALL, seed: int = 1) -> list[Known]:
    return opening.drawn(SCENARIOS, capabilities, random.Random(seed))


def test_every_shape_belongs_to_a_scenario_and_runs_where_everything_can_be_done() -> None:
    assert {shape.scenario for shape in SHAPES} <= {scenario.name for scenario in SCENARIOS}
    assert [known.shape for known in drawn(Opening())] == list(SHAPES)
    for shape in SHAPES:
        for length in LENGTHS:
            plan = shape.fitted(length, CAN_ALL)
            assert plan is not None
            assert unsound(plan) is None


def test_a_report_that_a_scenario_names_and_a_shape_follows_is_that_scenarios() -> None:
    for shape in SHAPES:
        scenario = by_name(shape.scenario)
        assert scenario is not None
        naming = [one.name for one in SCENARIOS if shape.report in one.reports]
        assert not naming or scenario.name in naming


def test_lengths_are_the_seeds() -> None:
    first, again, other = (drawn(Opening(), seed=seed) for seed in (1, 1, 2))
    assert [known.plan for known in first] == [known.plan for known in again]
    assert [known.plan for known in first] != [known.plan for known in other]


def test_shapes_of_other_scenarios_and_what_the_server_cannot_do_stay_out() -> None:
    scenarios = {known.scenario.name for known in Opening().drawn(MINE, CAN_ALL, random.Random(1))}
    assert scenarios == {"adapter-scale", "conversation"}
    assert not Opening().drawn([saved_slots.SCENARIO], Capabilities(SPACE, 4096), random.Random(1))


def test_adapters_are_named_unless_that_is_what_it_is_about() -> None:
    """A request that names none leaves them at the server's own scales, which is another bug than the shape's."""
    for known in drawn(Opening()):
        named = [request.scales for _, request in requests(known.plan) if request.scales is not None]
        assert all(named) == (not known.shape.as_spelled or not named)
    assert [known.shape.report for known in drawn(Opening()) if known.shape.as_spelled] == ["ggml-org/llama.cpp#28674"]


def test_a_shape_that_diverged_is_left_out_from_then_on() -> None:
    opening = Opening()
    first, *rest = drawn(opening)
    opening.diverged(first)
    assert [known.shape for known in drawn(opening)] == [known.shape for known in rest]


def test_a_campaign_opens_with_them_and_goes_on_after_a_bug() -> None:
    """On the real llama-server, whose restored entries ignore the scale that made them."""
    ran: list[Plan] = []

    def note(pending: Pending) -> None:
        ran.append(pending.plan)

    with bench(ServerOptions()) as servers:
        live = servers.differential
        exploration = Exploration(live, MINE, 1, [], enough=lambda: False, ran=note, opening=Opening())
        suspected = [exploration.next_suspect(1)]
        while suspected[-1] is not None:
            live.target.restart()
            suspected.append(exploration.next_suspect(1))
        able = live.target.server.capabilities
    shapes = [known.plan for known in Opening().drawn(MINE, able, random.Random(1_000_003))]
    assert suspected[0] is not None
    assert (suspected[0][0].plan, suspected[0][1]) == (shapes[0], adapter_scale.SCENARIO)
    # A plan is judged while the next one runs, which has to run again on the fresh server.
    assert ran[:3] == [shapes[0], shapes[1], shapes[1]]
    assert [plan for plan in dict.fromkeys(ran) if plan in shapes] == shapes
