"""Scenes of an engine that has to be installed, the same for each of them."""

from __future__ import annotations

from pathlib import Path

from running import stalefuzz


def sleeps_and_loads_other_weights(engine: str, env: dict[str, str], folder: Path, patience_s: float) -> None:
    """A sound server, put to sleep and given other weights between requests, is clean and reuses something."""
    scenarios = ("--scenario", "weights-reload", "--scenario", "sleeping")
    words = ("--launch", engine, *scenarios, "--max-steps", "120", "--seed", "1", "--time", "1800s")
    run = stalefuzz("run", *words, folder=folder, patience_s=patience_s, env=env)
    assert run.status == 0, run.said
    assert run.record["reuse"]["hits"] > 5
    assert min(run.record["exercised"][kind] for kind in ("reload_weights", "sleep")) >= 3
