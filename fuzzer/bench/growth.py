"""Growth: how speed, own CPU and memory change with the length of plans, with overlap, and over a long campaign.

The same requests, all under one adapter scale, so that the embedded llama-server is right throughout.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import msgspec

from fuzzer.bench.card import Figure, Part, Plot, Series, Setting
from fuzzer.bench.side_by_side import Block, SideBySide
from scenarios.capabilities import Capabilities
from scenarios.library import single_scale
from scenarios.scenario import Scenario
from scenarios.swarm import Profile

_LENGTHS = (2, 4, 8, 16, 32, 64)
"""Most operations of a plan."""
_SLOTS = 4
_OVERLAPPED = ("complete", "start", "start", "await", "join")
_SERIAL = ("complete",)
_SIZE, _FULL_SIZE = 100, 1_000
"""Requests for each plan length, and in each block of a campaign."""
_BLOCKS, _FULL_BLOCKS = 5, 50


class Point(msgspec.Struct, frozen=True):
    """Blocks of requests whose plans have at most ``most`` operations, one after another or overlapped."""

    most: int
    overlapped: bool
    block: Block


def measure(setting: Setting) -> Part:
    """First over plan lengths, serial and overlapped, then block after block of one campaign."""
    size = _FULL_SIZE if setting.full else _SIZE
    points: list[Point] = []
    with ExitStack() as stack:
        servers = SideBySide(stack, "-np", str(_SLOTS))
        for point in by_length(servers, _LENGTHS, size):
            points.append(point)
            setting.tell(_words(point))
        campaign = list(servers.blocks(single_scale.SCENARIO, _FULL_BLOCKS if setting.full else _BLOCKS, size))
    return Part(
        name="growth",
        command=setting.command("growth"),
        figures=figures(points, campaign),
        columns=["plans", "requests", "requests a second", "own CPU a request, ms", "memory, MB"],
        rows=[_row(_plans(point), point.block) for point in points]
        + [_row("a campaign, the next block", block) for block in campaign],
        plots=plots(points, campaign),
    )


def by_length(servers: SideBySide, lengths: Sequence[int], size: int) -> Iterator[Point]:
    """A block of ``size`` requests for each plan length, serial, then overlapped."""
    for overlapped in (False, True):
        for most in lengths:
            block = next(servers.blocks(_scenario(most, overlapped=overlapped), 1, size))
            yield Point(most, overlapped, block)


def _scenario(most: int, *, overlapped: bool) -> Scenario:
    def profile(rng: random.Random, capabilities: Capabilities) -> Profile:
        plain = single_scale.SCENARIO.profile(rng, capabilities)
        return msgspec.structs.replace(plain, most=most, kinds=_OVERLAPPED if overlapped else _SERIAL)

    return msgspec.structs.replace(single_scale.SCENARIO, profile=profile)


def figures(points: Sequence[Point], campaign: Sequence[Block]) -> list[Figure]:
    """The lines of the score card."""
    first, last = campaign[0], campaign[-1]
    requests = sum(block.requests for block in campaign)
    lines = [
        Figure(
            what=f"own CPU a request, plans of up to {short.most} and of up to {long.most} operations, {how}",
            measured=f"{_cpu_ms(short.block):.2f} and {_cpu_ms(long.block):.2f} ms",
        )
        for how, (short, *_, long) in _curves(points).items()
    ]
    return [
        *lines,
        Figure(
            what=f"own CPU a request, first and last block of a campaign of {requests:,} requests",
            measured=f"{_cpu_ms(first):.2f} and {_cpu_ms(last):.2f} ms",
        ),
        Figure(
            what=f"own memory, after the first and after the last block of a campaign of {requests:,} requests",
            measured=f"{first.resident_mb:.1f} and {last.resident_mb:.1f} MB",
        ),
    ]


def plots(points: Sequence[Point], campaign: Sequence[Block]) -> list[Plot]:
    """Speed and CPU by plan length; memory and CPU over the campaign."""
    return [*_by_length(points), *_by_requests(campaign)]


def _curves(points: Sequence[Point]) -> dict[str, list[Point]]:
    return {
        "one request after another": [point for point in points if not point.overlapped],
        f"overlapped on {_SLOTS} slots": [point for point in points if point.overlapped],
    }


def _cpu_ms(block: Block) -> float:
    return block.ms(block.process_cpu_s)


def _rate(block: Block) -> float:
    return block.requests / block.fuzzing_s


def _by_length(points: Sequence[Point]) -> list[Plot]:
    measures = (("growth-rate", "requests a second", _rate), ("growth-cpu", "own CPU a request, ms", _cpu_ms))
    return [
        Plot(
            name=name,
            title=f"{label} by plan length",
            x="most operations of a plan",
            y=label,
            series=[
                Series(how, [(point.most, value(point.block)) for point in curve])
                for how, curve in _curves(points).items()
            ],
            log_x=True,
        )
        for name, label, value in measures
    ]


def _by_requests(campaign: Sequence[Block]) -> list[Plot]:
    sent: list[int] = []
    for block in campaign:
        sent.append(block.requests + (sent[-1] if sent else 0))
    measures = (
        ("growth-memory", "own memory, MB", lambda block: block.resident_mb),
        ("growth-campaign", "own CPU a request, ms", _cpu_ms),
    )
    return [
        Plot(
            name=name,
            title=f"{label} over a campaign",
            x="requests",
            y=label,
            series=[Series("one campaign", [(at, value(block)) for at, block in zip(sent, campaign, strict=True)])],
        )
        for name, label, value in measures
    ]


def _plans(point: Point) -> str:
    return f"up to {point.most} operations, {'overlapped' if point.overlapped else 'serial'}"


def _words(point: Point) -> str:
    block = point.block
    return f"{_plans(point)}: {_rate(block):.0f} requests a second, {_cpu_ms(block):.2f} ms of own CPU a request"


def _row(name: str, block: Block) -> list[str]:
    return [name, str(block.requests), f"{_rate(block):.0f}", f"{_cpu_ms(block):.2f}", f"{block.resident_mb:.1f}"]
