"""A small fixed part of the benchmark: planted bugs of several kinds are found, sound servers are not blamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzer.bench.campaigns import campaign
from fuzzer.bench.mutation import score
from fuzzer.options import ServerOptions
from fuzzer.zoo.catalogue import MUTANTS

FOUND = [
    "slot-ignores-scales",
    "slot-ignores-adapter-id",
    "scale-truncated",
    "guard-compares-slot-history",
    "block-hash-without-adapter",
    "checkpoint-past-prefix",
    "recurrent-trim-ignored",
    "position-not-rewound",
    "ram-ignores-environment",
    "adapter-version-not-hashed",
    "block-hash-without-salt",
    "sampled-token-published",
]


def is_found(name: str, folder: Path, *, bf16: bool = False) -> None:
    mutant = next(mutant for mutant in MUTANTS.values() if mutant.name == name)
    scored = score(mutant, time_s=120.0, seed=1, folder=folder, bf16=bf16)
    assert scored.found
    assert scored.minimal, f"{scored.operations} operations, {scored.shortest} would do"


@pytest.mark.parametrize("name", FOUND)
def test_a_planted_bug_is_found_and_its_plan_is_short(name: str, tmp_path: Path) -> None:
    is_found(name, tmp_path)


TOLD_FROM_ROUNDING = {
    "moves no logprob": "mask-left-in-row",
    "is met while rounding is measured": "one-token-prompt-as-decode",
    "shows with lawful reuse too": "chunk-positions-without-hit",
    "shows with few tokens": "block-hash-truncated",
    "has a control arm": "ram-ignores-environment",
}


@pytest.mark.parametrize("name", TOLD_FROM_ROUNDING.values(), ids=TOLD_FROM_ROUNDING)
def test_in_bf16_a_planted_bug_is_told_from_rounding(name: str, tmp_path: Path) -> None:
    is_found(name, tmp_path, bf16=True)


@pytest.mark.parametrize("flags", [("--family", "dense"), ("--family", "swa"), ("--family", "hybrid", "--rows", "2")])
def test_a_sound_server_is_not_blamed(flags: tuple[str, ...], tmp_path: Path) -> None:
    servers = ServerOptions(launch="zoo", server_flags=("--flavour", "llama", *flags))
    record = campaign(servers, time_s=120.0, max_steps=300, seed=1, folder=tmp_path).record
    assert record.steps >= 300
    assert record.reuse.hits > 20
    assert [finding.title for finding in record.findings] == []
    assert record.suspects == []
