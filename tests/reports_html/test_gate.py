"""The CI gate: stalefuzz.toml, baseline, corpus, resume, compare; the exit status of each case."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from real_run import SEED, real_finding, real_record, real_run
from running import stalefuzz

from fuzzer.configuration import Configuration, cells, read_configuration, with_configuration
from fuzzer.errors import UsageError
from fuzzer.options import RunOptions, ServerOptions
from fuzzer.toml_file import line_of

FIND = ("run", "-x", "--scenario", "adapter-scale", "--seed", str(SEED))


def baseline(folder: Path, *lines: str, finding: str | None = None) -> Path:
    path = folder / "known.toml"
    path.write_text("\n".join(["[[known]]", f'id = "{finding or real_finding().id}"', 'reason = "ticket 7"', *lines]))
    return path


def corpus(folder: Path, name: str = "") -> Path:
    """A folder with the real finding's plan; under another name where one is given."""
    plans = folder / "corpus"
    plans.mkdir()
    content = json.loads((real_run() / "findings" / f"{real_finding().id}.json").read_text())
    content["id"] = name or content["id"]
    (plans / "finding.json").write_text(json.dumps(content))
    return plans


def test_corpus_is_replayed_first_and_a_new_finding_fails(tmp_path: Path) -> None:
    run = stalefuzz(*FIND, "--corpus", corpus(tmp_path), "--time", "60s", folder=tmp_path)
    assert run.status == 1, run.said
    assert run.record["steps"] == len(real_finding().plan)


def test_known_findings_are_reported_and_pass(tmp_path: Path) -> None:
    plans = corpus(tmp_path)
    run = stalefuzz(
        *FIND, "--corpus", plans, "--max-steps", "3", "--time", "60s", "--baseline", baseline(tmp_path), folder=tmp_path
    )
    assert run.status == 0, run.said
    (finding,) = run.record["findings"]
    assert (finding["known"], finding["known_reason"]) == (True, "ticket 7")
    assert "known (ticket 7)" in run.stdout
    assert run.record["baseline_unseen"] == []


def test_expired_entries_fail_again(tmp_path: Path) -> None:
    run = stalefuzz(
        *FIND,
        "--corpus", corpus(tmp_path), "--time", "60s",
        "--baseline", baseline(tmp_path, "expires = 2020-01-01"),
        folder=tmp_path,
    )  # fmt: skip
    assert run.status == 1, run.said
    assert "has expired" in run.stdout


def test_known_finding_that_no_longer_reproduces_is_said_to_be_fixed(tmp_path: Path) -> None:
    """A plan that is right here stands for a bug that was fixed: its environments all are one."""
    plans = corpus(tmp_path, name="abcdef")
    content = json.loads((plans / "finding.json").read_text())
    for operation in content["plan"]:
        operation["scales"] = [[0, 1.0], [1, 0.0]]
    (plans / "finding.json").write_text(json.dumps(content))
    run = stalefuzz(
        "run", "--scenario", "single-scale", "--seed", "3", "--max-steps", "40",
        "--corpus", plans, "--baseline", baseline(tmp_path, finding="abcdef"),
        folder=tmp_path,
    )  # fmt: skip
    assert run.status == 0, run.said
    assert run.record["baseline_fixed"] == ["abcdef"]
    assert "known finding abcdef no longer reproduces" in run.stdout


def test_an_earlier_run_serves_as_baseline(tmp_path: Path) -> None:
    run = stalefuzz(
        *FIND, "--corpus", corpus(tmp_path), "--max-steps", "3", "--baseline", real_run() / "run.json", folder=tmp_path
    )
    assert run.status == 0, run.said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[known]]\nid = "xyz"\nreason = "r"', "'xyz' is no finding's id"),
        ('[[known]]\nid = "ab"', "line 1: known[0]: Object missing required field `reason`"),
        ('[[known]]\nid = "ab"\nreason = "r"\nuntil = 3', "line 4: known[0].until: there is no such key"),
        ("{}", "it has neither findings nor an id"),
        ("[[known", "is not TOML"),
    ],
)
def test_bad_baselines_are_named(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text)
    run = stalefuzz(*FIND, "--baseline", path, folder=tmp_path)
    assert run.status == 2
    assert said in run.stderr
    assert "Traceback" not in run.said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[run]\nseeds = 3", "line 2: run.seeds: there is no such key"),
        ('\n[run]\nseed = "x"', "line 3: run.seed: Expected `int | null`, got `str`"),
        ('[run]\ntime = "soon"', "line 2: run.time: 'soon' is no duration"),
        (
            '[[target]]\ntiny = "dense"\n[[target]]\nflags = [1]',
            "line 4: target[1].flags[0]: Expected `str`, got `int`",
        ),
        ("[run]\nmax-steps = 0", "line 2: run.max-steps"),
        ("schema = 9", "is of format 9"),
        ("[run", "is not TOML"),
        ('[run]\nscenarios = ["nope"]', "there is no scenario called 'nope'"),
        ('baseline = "nowhere.toml"', "nowhere.toml cannot be read"),
        ('corpus = "nowhere"', "there is no such folder"),
        ('[[target]]\ntiny = "giant"', "no tiny model is called 'giant'"),
    ],
)
def test_bad_configurations_are_named(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "stalefuzz.toml"
    path.write_text(text)
    run = stalefuzz("run", "--config", path, folder=tmp_path)
    assert run.status == 2, run.said
    assert said in run.stderr
    assert "Traceback" not in run.said


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "stalefuzz.toml"
    path.write_text('out = "here"\n[run]\nseed = 5\ntime = "9s"\n[[target]]\ntiny = "swa"\n')
    file = read_configuration(path)
    asked = RunOptions(servers=ServerOptions(tiny="mamba"), seed=7)
    merged = with_configuration(asked, frozenset({"seed"}), path, file)
    assert (merged.seed, merged.time_s, merged.out) == (7, 9.0, tmp_path / "here")
    assert [cell.servers.tiny for cell in cells(file, path, asked.servers)] == ["mamba"]


def test_matrix_is_every_combination_once(tmp_path: Path) -> None:
    path = tmp_path / "stalefuzz.toml"
    path.write_text(
        '[[target]]\n[[target]]\nname = "old"\nbinary = "bin/llama-server"\ntiny = "dense"\n'
        '[matrix]\ntiny = ["dense", "swa"]\nflags = [[], ["-np", "2"]]\n'
    )
    found = cells(read_configuration(path), path, ServerOptions())
    assert [cell.name for cell in found] == ["dense", "dense-np-2", "swa", "swa-np-2", "old", "old-np-2"]
    assert found[-1].servers.binary == tmp_path / "bin" / "llama-server"
    assert cells(Configuration(), path, ServerOptions())[0].servers == ServerOptions()


def test_matrix_runs_each_cell_and_merges_them(tmp_path: Path) -> None:
    path = tmp_path / "stalefuzz.toml"
    path.write_text(
        'out = "stalefuzz-out"\n[run]\ntime = "60s"\nmax-steps = 30\nseed = 2\nscenarios = ["single-scale"]\n'
        '[matrix]\nflags = [["--cache-ram", "64"], ["-np", "2"]]\n'
    )
    run = stalefuzz("run", "--config", path, folder=tmp_path)
    assert run.status == 0, run.said
    names = [cell["name"] for cell in run.record["matrix"]]
    assert names == ["target-cache-ram-64", "target-np-2"]
    steps = [json.loads((run.out / name / "run.json").read_text())["steps"] for name in names]
    assert run.record["steps"] == sum(steps)
    assert all((run.out / name / "report.html").is_file() for name in names)


def test_resumed_run_keeps_what_was_found_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "stalefuzz-out"
    shutil.copytree(real_run(), out)
    before = real_record()
    run = stalefuzz("run", "--resume", out, "--scenario", "single-scale", "--max-steps", str(before.steps + 30),
                    folder=tmp_path)  # fmt: skip
    assert run.status == 1, run.said
    record = run.record
    assert [finding["id"] for finding in record["findings"]] == [finding.id for finding in before.findings]
    assert record["seed"] == before.seed
    assert record["steps"] > before.steps
    assert record["elapsed_s"] > before.elapsed_s
    assert record["requests"]["target"] > before.requests.target
    assert len(run.events("started")) == 2


def test_resuming_nothing_is_refused(tmp_path: Path) -> None:
    run = stalefuzz("run", "--resume", tmp_path / "nowhere", folder=tmp_path)
    assert run.status == 2
    assert "cannot be read" in run.stderr


def write_run(folder: Path, name: str, **changes: object) -> Path:
    path = folder / name
    path.mkdir()
    record = msgspec.structs.replace(real_record(), **changes)
    (path / "run.json").write_bytes(msgspec.json.encode(record))
    return path


def test_compare_says_new_gone_and_still_there(tmp_path: Path) -> None:
    clean = write_run(tmp_path, "clean", findings=[], verdict="clean")
    other = msgspec.structs.replace(real_finding(), id="abcdef", title="another")
    found = write_run(tmp_path, "other", findings=[other])
    new = stalefuzz("compare", clean, real_run(), folder=tmp_path)
    assert (new.status, "NEW" in new.stdout) == (1, True)
    gone = stalefuzz("compare", real_run(), clean, folder=tmp_path)
    assert (gone.status, "GONE" in gone.stdout) == (0, True)
    same = stalefuzz("compare", real_run(), real_run(), folder=tmp_path)
    assert (same.status, "STILL THERE" in same.stdout) == (0, True)
    both = stalefuzz("compare", real_run(), found, folder=tmp_path)
    assert both.status == 1
    assert "NEW" in both.stdout
    assert "GONE" in both.stdout


def test_compare_with_an_inconclusive_run_promises_nothing(tmp_path: Path) -> None:
    unsure = write_run(tmp_path, "unsure", findings=[], verdict="inconclusive", steps=1)
    run = stalefuzz("compare", real_run(), unsure, folder=tmp_path)
    assert run.status == 3
    assert "may be there all the same" in run.stdout


def test_compare_and_report_refuse_what_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "sub").mkdir()
    evil = write_run(tmp_path, "evil", findings=[msgspec.structs.replace(real_finding(), id="../x")])
    for words in (("compare", "sub", tmp_path), ("report", "sub"), ("report", evil)):
        run = stalefuzz(*words, folder=tmp_path)
        assert run.status == 2, run.said
        assert "Traceback" not in run.said
    assert not (evil / "x.json").exists()


def test_report_renders_everything_again(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(real_run() / "run.json", copy)
    shutil.copy(real_run() / "events.jsonl", copy)
    assert stalefuzz("report", copy, folder=tmp_path).status == 0
    files = [path.relative_to(real_run()) for path in real_run().rglob("*") if path.is_file()]
    for file in files:
        if file.parts[0] != "models":
            assert (copy / file).read_bytes() == (real_run() / file).read_bytes(), file


def test_lines_of_keys() -> None:
    text = "a = 1\n[b]\nc = 2\n[[d]]\ne = 3\n[[d]]\ne = 4\n"
    assert line_of(text, ["b", "c"]) == 3
    assert line_of(text, ["d", 1, "e"]) == 7
    assert line_of(text, ["d", 1]) == 6
    assert line_of(text, ["nope"]) is None


def test_file_errors_name_the_flag(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--config"):
        read_configuration(tmp_path / "no.toml")
