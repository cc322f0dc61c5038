"""Each part of the benchmark in its smallest form, on real servers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from running import stalefuzz

from fuzzer.bench import baselines, cold_start, growth, mutation, throughput
from fuzzer.bench.card import Setting
from fuzzer.bench.ecdf import ecdf
from fuzzer.bench.false_alarms import GROUPS, Sound, alarms_on
from fuzzer.bench.naming import named_rightly
from fuzzer.bench.pair_of_servers import pair_of_servers
from fuzzer.bench.side_by_side import SideBySide
from fuzzer.bench.vocabulary import cost
from fuzzer.options import ServerOptions
from fuzzer.triage.kinds import Kind as Named
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.catalogue import MUTANTS
from fuzzer.zoo.mutants import Kind
from scenarios.library import single_scale


def setting(folder: Path, *mutants: str, full: bool = False) -> Setting:
    return Setting(full=full, seed=1, time_s=120.0, folder=folder, tell=lambda line: None, mutants=mutants)


@pytest.fixture(scope="module")
def servers() -> Iterator[SideBySide]:
    with ExitStack() as stack:
        yield SideBySide(stack, "-np", "2")


def test_the_score_of_one_mutant(tmp_path: Path) -> None:
    part = mutation.measure(setting(tmp_path, "slot-ignores-scales"))
    found, confirmed, diverged, minimal, named, _, reducing = part.figures
    assert (found.measured, found.met) == ("1 of 1", True)
    assert (minimal.measured, minimal.met) == ("1 of 1", True)
    assert named.measured == "1 of 1"
    assert reducing.met
    first, last = (float(figure.measured.removesuffix(" s")) for figure in (diverged, confirmed))
    assert 0 < first < last
    row = dict(zip(part.columns, part.rows[0], strict=True))
    assert (row["mutant"], row["found"], row["operations"]) == ("slot-ignores-scales", "yes", "2")
    assert float(row["diverged, s"]) < float(row["s"])
    assert 1 <= int(row["reducing"]) <= 100
    assert int(row["requests"]) > 1
    assert [series.points[-1][1] for series in part.plots[0].series] == [1.0, 1.0]


def test_baselines_are_given_the_same_bugs(tmp_path: Path) -> None:
    part = baselines.measure(setting(tmp_path, "slot-ignores-scales"))
    assert [figure.measured.split(",")[0] for figure in part.figures] == ["1 of 1", "1 of 1"]
    row = dict(zip(part.columns, part.rows[0], strict=True))
    assert row["mutant"] == "slot-ignores-scales"
    assert float(row["random, s"]) > 0 < float(row["script, s"])
    assert [series.points[-1][1] for series in part.plots[0].series] == [1.0, 1.0]


def test_a_mutant_that_is_not_found_is_listed_and_misses_the_goal(tmp_path: Path) -> None:
    ended = stalefuzz("bench", "mutation", "--mutant", "slot-ignores-scales", "--time", "1ms", folder=tmp_path)
    assert ended.status == 1
    assert "slot-ignores-scales: NOT FOUND" in ended.stdout
    (measured,) = json.loads((ended.out / "bench.json").read_text())["parts"]
    assert measured["part"]["figures"][0] == {
        "what": "planted bugs found within 0.001 s each",
        "measured": "0 of 1; not found: slot-ignores-scales",
        "goal": "all",
        "met": False,
    }
    assert measured["part"]["rows"][0][:4] == ["slot-ignores-scales", "K1", "NO", "-"]
    assert "| slot\\-ignores\\-scales | K1 | NO |" in (ended.out / "bench.md").read_text()


def test_the_forms_choose_their_mutants(tmp_path: Path) -> None:
    few = mutation.chosen(setting(tmp_path))
    assert len({mutant.kind for mutant in few}) >= 6
    assert mutation.chosen(setting(tmp_path, full=True)) == list(MUTANTS.values())
    assert mutation.chosen(setting(tmp_path, "scale-truncated", full=True)) == [MUTANTS[Bug.SCALE_TRUNCATED]]


def test_kinds_have_their_names() -> None:
    assert all(any(named_rightly(planted, named) for named in Named) for planted in Kind)
    assert not named_rightly(Kind.KEY_OMITS_INPUT, Named.HEALTH)
    assert not named_rightly(Kind.OTHER_STATE_LEAKS, Named.RESTORED_PAST_PREFIX)


@pytest.mark.parametrize("sound", [GROUPS["zoo, bf16"][0], GROUPS["zoo, bf16"][5], GROUPS["llama-server"][1]])
def test_a_sound_server_is_not_blamed(sound: Sound, tmp_path: Path) -> None:
    alarms = alarms_on(sound, setting(tmp_path), 100)
    assert alarms.steps >= 100
    assert alarms.hits > 3
    assert (alarms.suspects, alarms.findings, alarms.reasons) == ([], [], [])


def test_sound_servers_come_in_every_form() -> None:
    names = [sound.name for group in GROUPS.values() for sound in group]
    assert len(set(names)) == len(names) == 16


def test_a_server_with_a_bug_is_blamed(tmp_path: Path) -> None:
    buggy = Sound("buggy", mutation.servers_of(MUTANTS[Bug.SLOT_IGNORES_SCALES]))
    assert alarms_on(buggy, setting(tmp_path), 400).findings


def test_own_cpu_is_counted_part_by_part(servers: SideBySide) -> None:
    (first, second) = servers.blocks(single_scale.SCENARIO, 2, 30)
    for block in (first, second):
        assert block.requests >= 30
        parts = (block.generation_cpu_s, block.target_cpu_s, block.reference_cpu_s, block.verdict_cpu_s)
        assert min(*parts, block.bare_cpu_s, block.bare_s) > 0
        assert sum(parts) <= block.process_cpu_s * 1.1
        assert block.resident_mb > 10
    ratio, cpu, each, memory = throughput.figures([first, second])
    assert (ratio.goal, cpu.goal, memory.goal) == ("at least 0.8", "under 0.4 ms", "under 1 MB")
    assert "generation" in each.measured


def test_growth_is_measured_with_and_without_overlap(servers: SideBySide) -> None:
    points = list(growth.by_length(servers, (2, 16), 20))
    assert [(point.most, point.overlapped) for point in points] == [(2, False), (16, False), (2, True), (16, True)]
    assert all(point.block.requests >= 20 for point in points)
    campaign = [point.block for point in points]
    assert all("ms" in figure.measured or "MB" in figure.measured for figure in growth.figures(points, campaign))
    assert {plot.name for plot in growth.plots(points, campaign)} == {
        "growth-rate",
        "growth-cpu",
        "growth-memory",
        "growth-campaign",
    }


def test_longer_lists_cost_more() -> None:
    short, long = cost(20, 3, random.Random(1)), cost(4096, 3, random.Random(1))
    assert 0 < short.rounded_ms < long.rounded_ms
    assert long.equal_ms < long.rounded_ms


def test_a_cold_start_finds_a_minimal_plan() -> None:
    run = cold_start.cold_run(1)
    assert run.plan is not None
    with pair_of_servers(ServerOptions()) as differential:
        assert cold_start.checked(differential, run).minimal
        longer = run.plan.operations * 2
        assert cold_start.still_shown(differential, type(run.plan)(longer))
    assert run.again_s > 0
    assert [figure.met for figure in cold_start.figures([run])][1:] == [None, True]


def test_shares_count_what_never_came() -> None:
    assert ecdf("x", [3.0, None, 1.0, None]).points == [(1.0, 0.0), (1.0, 0.25), (3.0, 0.25), (3.0, 0.5)]
