"""Which values are simpler than others."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from scenarios.environment import AdapterScale

_SCALE_ORDER = (0.0, 1.0, 0.5)
"""From the simplest scale on; any other one is less simple than these."""


def lower(value: int) -> Iterator[int]:
    """Smaller values down to 1: the smallest first, since most minima are small; then by ever smaller steps.

    By halves and ones alone, a minimum a little above half is reached one by one.
    """
    tried = dict.fromkeys([1, 2, 3, 4, 6, value // 2, value - value // 4, value - value // 8, value - 1])
    yield from (number for number in tried if 1 <= number < value)


def simpler_spellings(scales: tuple[AdapterScale, ...] | None) -> Iterator[tuple[AdapterScale, ...]]:
    """Everything off, then one adapter off or at a simpler scale; nothing is simpler than a list left out or empty."""
    if not scales:
        return
    off = tuple(AdapterScale(scale.adapter, 0.0) for scale in scales)
    if scales != off:
        yield off
    for at, scale in enumerate(scales):
        for simpler in simpler_than(scale.scale):
            changed = (*scales[:at], AdapterScale(scale.adapter, simpler), *scales[at + 1 :])
            if changed != off:
                yield changed


def simpler_than(scale: float) -> tuple[float, ...]:
    """Scales simpler than this one, the simplest first."""
    return _SCALE_ORDER[: _SCALE_ORDER.index(scale)] if scale in _SCALE_ORDER else _SCALE_ORDER


def swapped(scales: tuple[AdapterScale, ...], one: int, other: int) -> tuple[AdapterScale, ...]:
    """The same list with two adapters' scales exchanged."""
    names = {one: other, other: one}
    return tuple(
        sorted(msgspec.structs.replace(scale, adapter=names.get(scale.adapter, scale.adapter)) for scale in scales)
    )
