"""Duplicates: one bug, found from many seeds, has one fingerprint.

Every seed draws its own plans on llama-server, whose adapter-scale bug they meet at other lengths, scales and places;
reduced and explained, each must end at the same necessary elements.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from fuzzer.bench.card import Figure, Part, Setting
from fuzzer.bench.pair_of_servers import Bench, bench
from fuzzer.campaign import Exploration
from fuzzer.options import ServerOptions
from reports.record import FindingRecord
from scenarios.library import adapter_scale

_SEEDS, _FULL_SEEDS = 4, 20
_TRIES = 5
"""Suspects of a seed that may come to nothing."""


class Found(msgspec.Struct, frozen=True):
    """What one seed ended at; no id where it found nothing."""

    seed: int
    id: str
    operations: int = 0
    necessary: tuple[str, ...] = ()


def measure(setting: Setting) -> Part:
    """One finding from each seed."""
    with bench(ServerOptions()) as servers:
        found = []
        for number in range(_FULL_SEEDS if setting.full else _SEEDS):
            found.append(finding_of(servers, setting.seed + number))
            setting.tell(f"seed {found[-1].seed}: {found[-1].id or 'nothing'}")
    return Part(
        name="duplicates",
        command=setting.command("duplicates"),
        figures=[figure(found)],
        columns=["seed", "finding", "operations", "necessary"],
        rows=[[str(one.seed), one.id or "-", str(one.operations), ", ".join(one.necessary)] for one in found],
    )


def figure(found: list[Found]) -> Figure:
    """Whether they are all one."""
    counts = Counter(one.id for one in found if one.id)
    most = counts.most_common(1)[0][1] if counts else 0
    return Figure(
        what=f"fingerprints of one bug found from {len(found)} seeds",
        measured=f"{len(counts)}; the commonest from {most} seeds",
        goal=f"1, from all {len(found)}",
        met=len(counts) == 1 and most == len(found),
    )


def finding_of(servers: Bench, seed: int) -> Found:
    """The first finding of the adapter-scale scenario with this seed."""
    exploration = Exploration(
        servers.differential,
        [adapter_scale.SCENARIO],
        seed,
        [],
        enough=lambda: False,
        ran=lambda pending: None,
    )
    for _ in range(_TRIES):
        suspected = exploration.next_suspect()
        assert suspected is not None
        result = servers.triage().investigate(suspected[0], servers.case(adapter_scale.SCENARIO.name, seed))
        if isinstance(result, FindingRecord):
            return Found(seed, result.id, result.operations, tuple(result.necessary))
    return Found(seed, "")
