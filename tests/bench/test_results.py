"""bench.json adds up over several runs; bench.md is its score card; a missed goal is told by the exit status."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import msgspec
import pytest

from fuzzer.bench import parts, plots
from fuzzer.bench.card import Figure, Measure, Part, Plot, Series, Setting
from fuzzer.bench.markdown import card, page
from fuzzer.bench.parts import Parts
from fuzzer.bench.results import Machine, Measured, Results, read_results
from fuzzer.commands.bench import BenchOptions, bench_command
from fuzzer.errors import CannotJudge, UsageError
from fuzzer.exit_status import Exit

CURVE = Plot(name="curve", title="A curve", x="x", y="y", series=[Series("one", [(1, 2), (2, 3)]), Series("none", [])])


def part(name: str, measured: str = "1 of 1", *, met: bool | None = True) -> Part:
    figure = Figure(what=f"the {name}", measured=measured, goal="all", met=met)
    return Part(name=name, command=f"stalefuzz bench {name}", figures=[figure], columns=["case"], rows=[["a|b"]])


def giving(*given: Part) -> Parts:
    """A benchmark whose parts have been measured already."""
    return {part.name: (f"about {part.name}", partial(_measured, part)) for part in given}


def _measured(given: Part, setting: Setting) -> Part:
    setting.tell("[bold]one case[/bold]")
    assert setting.folder.is_dir()
    return given


def unable(setting: Setting) -> Part:
    raise CannotJudge("no server")


def test_runs_of_single_parts_add_up(tmp_path: Path) -> None:
    for given in (part("one", "first"), part("two"), part("one", "second")):
        assert bench_command(BenchOptions(out=tmp_path), giving(given)) == Exit.CLEAN
    results = read_results(tmp_path)
    assert [measured.part.name for measured in results.parts] == ["one", "two"]
    assert results.parts[0].part.figures[0].measured == "second"
    machine = results.parts[0].machine
    assert machine.cores >= 1
    assert {"stalefuzz", "xllamacpp"} <= set(machine.versions)


def test_only_the_parts_named_are_measured(tmp_path: Path) -> None:
    bench_command(BenchOptions(parts=("two",), out=tmp_path), giving(part("one"), part("two")))
    assert [measured.part.name for measured in read_results(tmp_path).parts] == ["two"]


@pytest.mark.parametrize(
    ("met", "other", "status"),
    [
        (True, None, Exit.CLEAN),
        (None, None, Exit.CLEAN),
        (False, None, Exit.FINDING),
        (True, unable, Exit.INCONCLUSIVE),
        (False, unable, Exit.FINDING),
    ],
)
def test_a_missed_goal_is_status_1_also_beside_a_part_that_could_not_measure(
    met: bool | None, other: Measure | None, status: Exit, tmp_path: Path
) -> None:
    given = giving(part("one", met=met)) | ({"two": ("cannot", other)} if other else {})
    assert bench_command(BenchOptions(out=tmp_path), given) == status


def test_the_exit_status_speaks_of_this_run_alone(tmp_path: Path) -> None:
    assert bench_command(BenchOptions(out=tmp_path), giving(part("one", met=False))) == Exit.FINDING
    assert bench_command(BenchOptions(out=tmp_path), giving(part("two"))) == Exit.CLEAN


def test_the_score_card_is_a_table_with_command_and_date() -> None:
    machine = Machine(2, "Linux", "3.11", 0.1, {"stalefuzz": "1"})
    measured = Measured(part("one", "7 | 8", met=False), "2026-11-30T02:00:00+00:00", machine, 1.0)
    assert card(Results([measured])).splitlines() == [
        "| what | measured | goal | met | command | date |",
        "| --- | --- | --- | --- | --- | --- |",
        "| the one | 7 \\| 8 | all | **no** | `stalefuzz bench one` | 2026-11-30 |",
    ]
    text = page(Results([measured]), drawn=True)
    assert "- 2 cores, Linux, Python 3.11; stalefuzz 1" in text
    assert "| a\\|b |" in text


@pytest.mark.parametrize(
    ("content", "says"), [(b"{}", "cannot be added to"), (b'{"parts": [], "schema": 99}', "format 99")]
)
def test_a_file_that_is_no_result_is_left_alone(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "bench.json").write_bytes(content)
    with pytest.raises(UsageError, match=says):
        bench_command(BenchOptions(parts=("throughput",), out=tmp_path))
    assert (tmp_path / "bench.json").read_bytes() == content


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (BenchOptions(parts=("nothing",)), "has no part 'nothing'; it has mutation"),
        (BenchOptions(quick=True, full=True), "exclude each other"),
        (BenchOptions(mutants=("nothing",)), "no planted bug called 'nothing'"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is(options: BenchOptions, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bench_command(options)


def test_quick_parts_are_parts() -> None:
    assert set(parts.QUICK) <= set(parts.PARTS)


def test_equal_data_are_drawn_to_equal_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        plots.write_plots(folder, [CURVE, msgspec.structs.replace(CURVE, name="log", log_x=True, log_y=True)])
    first = (tmp_path / "a" / "curve.svg").read_bytes()
    assert first == (tmp_path / "b" / "curve.svg").read_bytes()
    assert b"A curve" in first
    assert (tmp_path / "a" / "log.svg").read_bytes() != first


def test_without_matplotlib_one_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # None in sys.modules is how Python itself marks a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    given = msgspec.structs.replace(part("one"), plots=[CURVE])
    assert bench_command(BenchOptions(out=tmp_path), giving(given)) == Exit.CLEAN
    said = capsys.readouterr().out
    assert said.count("matplotlib is not installed") == 1
    assert "[bold]one case[/bold]" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "bench.md"]
    assert "curve.svg" not in (tmp_path / "bench.md").read_text()


def test_the_command_that_measures_again_names_what_is_not_usual() -> None:
    usual = Setting(full=False, seed=1, time_s=60.0, folder=Path(), tell=print)
    assert usual.command("mutation") == "stalefuzz bench mutation"
    other = msgspec.structs.replace(usual, full=True, seed=2, time_s=5.0, mutants=("a", "b"))
    assert other.command("mutation") == "stalefuzz bench mutation --full --seed 2 --time 5s --mutant a --mutant b"
