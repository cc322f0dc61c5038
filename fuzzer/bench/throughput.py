"""Throughput: requests a second on the target while the reference answers and answers are compared, and their cost."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from fuzzer.bench.card import Figure, Part, Setting
from fuzzer.bench.side_by_side import Block, SideBySide
from scenarios.library import single_scale

_BLOCKS, _SIZE = 4, 200
_FULL_BLOCKS, _FULL_SIZE = 8, 500
_RATIO = 0.8
_CPU_MS = 0.4
_GROWTH_MB = 1.0


def measure(setting: Setting) -> Part:
    """Alternate blocks of fuzzing with blocks of the bare loop."""
    count, size = (_FULL_BLOCKS, _FULL_SIZE) if setting.full else (_BLOCKS, _SIZE)
    with ExitStack() as stack:
        blocks = list(SideBySide(stack).blocks(single_scale.SCENARIO, count, size))
    return Part(
        name="throughput",
        command=setting.command("throughput"),
        figures=figures(blocks),
        columns=[
            "requests",
            "fuzzing, /s",
            "bare, /s",
            "ratio",
            *(f"CPU ms, {name}" for name in _CPU),
            "memory, MB",
        ],
        rows=[_row(block) for block in blocks],
    )


_CPU: dict[str, Callable[[Block], float]] = {
    "generation": lambda block: block.generation_cpu_s,
    "target": lambda block: block.target_cpu_s,
    "reference": lambda block: block.reference_cpu_s,
    "verdict": lambda block: block.verdict_cpu_s,
    "all": lambda block: block.process_cpu_s,
    "bare loop": lambda block: block.bare_cpu_s,
}


def figures(blocks: Sequence[Block]) -> list[Figure]:
    """The lines of the score card."""
    ratios = [block.ratio for block in blocks]
    ratio = statistics.median(ratios)
    added = statistics.median(block.ms(block.target_cpu_s + block.verdict_cpu_s - block.bare_cpu_s) for block in blocks)
    each = {name: statistics.median(block.ms(cpu(block)) for block in blocks) for name, cpu in _CPU.items()}
    growth = blocks[-1].resident_mb - blocks[0].resident_mb
    later = sum(block.requests for block in blocks[1:])
    return [
        Figure(
            what="requests a second on the target, with reference and verdicts, as a share of a bare httpx loop's",
            measured=f"median {ratio:.2f}, least {min(ratios):.2f}",
            goal=f"at least {_RATIO}",
            met=ratio >= _RATIO,
        ),
        Figure(
            what="own CPU a request of the target's leg and its verdict, beyond the bare httpx loop's",
            measured=f"{added:+.2f} ms",
            goal=f"under {_CPU_MS} ms",
            met=added < _CPU_MS,
        ),
        Figure(
            what="own CPU a request, part by part",
            measured=", ".join(f"{name} {ms:.2f} ms" for name, ms in each.items()),
        ),
        # The first block fills caches of fixed size.
        Figure(
            what=f"growth of own memory over {later:,} requests after the first block",
            measured=f"{growth:+.1f} MB",
            goal=f"under {_GROWTH_MB:g} MB",
            met=growth < _GROWTH_MB,
        ),
    ]


def _row(block: Block) -> list[str]:
    cpu = [f"{block.ms(part(block)):.2f}" for part in _CPU.values()]
    speeds = [f"{block.requests / block.fuzzing_s:.0f}", f"{block.requests / block.bare_s:.0f}", f"{block.ratio:.2f}"]
    return [str(block.requests), *speeds, *cpu, f"{block.resident_mb:.0f}"]
