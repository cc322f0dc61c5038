"""Runs without a finding: clean, and why it is believed; or inconclusive, and why."""

from __future__ import annotations

from pathlib import Path

from running import llama_server, stalefuzz

from fuzzer.models.tiny import tiny_model

STEPS = ("--max-steps", "150", "--seed", "5")


def test_the_control_scenario_is_clean(tmp_path: Path) -> None:
    run = stalefuzz("run", "--scenario", "single-scale", *STEPS, folder=tmp_path)
    assert run.status == 0, run.said
    record = run.record
    assert record["verdict"] == "clean"
    assert record["reasons"] == record["findings"] == record["suspects"] == []
    assert record["steps"] >= 150
    assert record["reuse"]["hits"] > record["steps"] / 10
    assert "\nCLEAN  0 findings, 0 suspects in " in run.stdout


def test_it_is_clean_without_the_cache_that_has_the_bug(tmp_path: Path) -> None:
    run = stalefuzz("run", "--scenario", "adapter-scale", *STEPS, "--", "--cache-ram", "0", folder=tmp_path)
    assert run.status == 0, run.said
    assert run.record["reuse"]["hits"] > 0
    assert "--cache-ram 0" in run.record["target"]["launch"]


def test_a_run_that_reused_nothing_tested_nothing(tmp_path: Path) -> None:
    run = stalefuzz("run", "--scenario", "adapter-scale", *STEPS, "--", "--no-cache-prompt", folder=tmp_path)
    assert run.status == 3
    assert run.record["verdict"] == "inconclusive"
    assert run.record["reuse"] == {"hits": 0, "tokens": 0}
    assert "ever reused anything, so nothing was tested" in run.stdout


def test_a_scenario_that_needs_adapters_says_so(tmp_path: Path) -> None:
    run = stalefuzz("run", "--scenario", "adapter-scale", "--adapter", "none", *STEPS, folder=tmp_path)
    assert run.status == 3
    assert "no adapter" in run.stdout
    assert "adapter-scale" in run.record["not_exercised"]


def test_other_weights_are_loaded_while_the_server_sleeps(tmp_path: Path) -> None:
    both = ("--scenario", "weights-reload", "--scenario", "adapter-reload")
    run = stalefuzz("run", *both, "--max-steps", "60", "--seed", "1", folder=tmp_path)
    assert run.status == 0, run.said
    assert run.record["reuse"]["hits"] > 5
    for load in ("reload", "reload_weights"):
        assert run.record["exercised"][load] > 1
        assert run.record["coverage"][load] == {"done": run.record["exercised"][load]}


def test_a_model_of_the_users_has_no_other_weights(tmp_path: Path) -> None:
    model = ("--model", tiny_model("dense").path, "--scenario", "weights-reload")
    run = stalefuzz("run", *model, *STEPS, folder=tmp_path)
    assert run.status == 3
    assert run.record["not_exercised"]["weights-reload"] == "the server cannot do: reload_weights"


def test_a_server_that_runs_already(tmp_path: Path) -> None:
    with llama_server("--cache-ram", "0") as server:
        alone = stalefuzz("run", "--target", server.url, *STEPS, folder=tmp_path)
        assert alone.status == 0, alone.said
        assert alone.record["target"]["url"] == server.url
        assert alone.record["reference"]["mode"] == "bypass"
        assert alone.record["reuse"]["hits"] > 0
        assert server.alive()


def test_a_server_that_runs_already_has_the_bug(tmp_path: Path) -> None:
    """One server only: it is its own reference, and what it holds after one plan must not reach the next."""
    with llama_server() as server:
        run = stalefuzz("run", "-x", "--target", server.url, "--seed", "2", folder=tmp_path)
        assert run.status == 1, run.said
        (finding,) = run.record["findings"]
        assert finding["operations"] == 3
        assert finding["settings"]["flags"] == []
        replayed = stalefuzz(
            "replay", run.out / "findings" / f"{finding['id']}.json", "--target", server.url, folder=tmp_path
        )
        assert replayed.status == 1, replayed.said


def test_a_second_server_as_the_reference(tmp_path: Path) -> None:
    with llama_server() as server, llama_server("--cache-ram", "0") as other, llama_server() as another:
        servers = ("--target", server.url, "--reference", other.url)
        run = stalefuzz("run", "-x", *servers, "--seed", "2", folder=tmp_path)
        assert run.status == 1, run.said
        paired = run.record
        assert paired["reference"]["mode"] == "url"
        assert paired["reference"]["url"] == other.url
        alone = stalefuzz("run", "-x", "--target", another.url, "--seed", "2", folder=tmp_path).record
        assert [finding["id"] for finding in alone["findings"]] == [finding["id"] for finding in paired["findings"]]
        hidden = "state that is inherited without reuse"
        assert [hidden in record["not_exercised"] for record in (alone, paired)] == [True, False]


def test_a_reference_that_is_another_model(tmp_path: Path) -> None:
    with llama_server() as server, llama_server(tiny="swa") as other:
        run = stalefuzz("run", "--target", server.url, "--reference", other.url, *STEPS, folder=tmp_path)
        assert run.status == 3
        assert "not the same model" in run.stdout


def test_probe_tells_what_a_server_by_itself_cannot_show(tmp_path: Path) -> None:
    with llama_server() as server:
        probe = stalefuzz("probe", "--target", server.url, folder=tmp_path)
    assert probe.status == 0, probe.said
    (line,) = [line for line in probe.stdout.splitlines() if line.startswith("  cannot see ")]
    assert "state that is inherited without reuse: the target is its own reference, so both" in line


def test_probe_tells_what_a_run_could_see(tmp_path: Path) -> None:
    probe = stalefuzz("probe", folder=tmp_path)
    assert probe.status == 0, probe.said
    assert "top-50 logprobs, 2 adapters" in probe.stdout
    assert "bound" in probe.stdout
    assert not (tmp_path / "stalefuzz-out").exists()


def test_scenarios_name_what_they_stand_for(tmp_path: Path) -> None:
    listed = stalefuzz("scenarios", folder=tmp_path)
    assert listed.status == 0
    assert "adapter-scale" in listed.stdout
    assert "llama.cpp#30129" in listed.stdout
