"""How much of something was reached by when."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzer.bench.card import Series


def ecdf(name: str, values: Sequence[float | None]) -> Series:
    """The share of all cases that had come by each value, as steps; None is a case that never came."""
    points: list[tuple[float, float]] = []
    for at, value in enumerate(sorted(value for value in values if value is not None)):
        points += [(value, at / len(values)), (value, (at + 1) / len(values))]
    return Series(name, points)
