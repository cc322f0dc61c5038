"""``stalefuzz bench``: how good the fuzzer is, measured here and now."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from fuzzer.bench.mutation import Score, false_alarms, score, summary, table
from fuzzer.exit_status import Exit
from fuzzer.zoo.catalogue import MUTANTS
from fuzzer.zoo.mutants import Mutant
from reports.console import console
from reports.folder import write_atomically

_QUICK = (
    "slot-ignores-scales",
    "scale-truncated",
    "guard-compares-slot-history",
    "checkpoint-past-prefix",
    "recurrent-trim-ignored",
    "position-not-rewound",
    "ram-ignores-environment",
    "penalties-left-in-row",
)
"""A few mutants of as many kinds, for a look in minutes."""
_CLEAN_S = 30.0


class Card(msgspec.Struct, frozen=True):
    """What a benchmark measured."""

    scores: list[Score]
    clean: dict[str, int]
    """Steps on zoo servers without a bug."""
    false_alarms: int


def bench_command(*, quick: bool, time_s: float, seed: int, out: Path) -> Exit:
    """Mutation score and false alarms; status 1 where a mutant was missed or a sound server was blamed."""
    screen = console()
    scores: list[Score] = []
    with tempfile.TemporaryDirectory() as folder:
        for mutant in _chosen(quick=quick):
            scores.append(score(mutant, time_s=time_s, seed=seed, folder=Path(folder)))
            screen.print(f"{scores[-1].name}: {scores[-1].words}", highlight=False)
        clean, alarms = _clean(Path(folder), seed, time_s=min(time_s, _CLEAN_S) if quick else 4 * _CLEAN_S)
    screen.print(table(scores))
    screen.print(summary(scores), highlight=False)
    screen.print(f"{alarms} false alarms in {sum(clean.values())} steps on sound servers", highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    card = Card(scores, clean, alarms)
    write_atomically(out / "bench.json", msgspec.json.format(msgspec.json.encode(card), indent=2) + b"\n")
    return Exit.CLEAN if alarms == 0 and all(one.found for one in scores) else Exit.FINDING


def _chosen(*, quick: bool) -> list[Mutant]:
    return [mutant for mutant in MUTANTS.values() if mutant.name in _QUICK] if quick else list(MUTANTS.values())


def _clean(folder: Path, seed: int, *, time_s: float) -> tuple[dict[str, int], int]:
    """The same campaign on servers without any bug."""
    steps: dict[str, int] = {}
    alarms = 0
    for family in ("dense", "swa", "hybrid"):
        flags = ("--flavour", "llama", "--family", family)
        steps[family], found = false_alarms(flags, time_s=time_s, seed=seed, folder=folder)
        alarms += len(found)
    return steps, alarms
