"""Values as they are written on the command line and in stalefuzz.toml."""

from __future__ import annotations

import re

_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds(text: str) -> float | None:
    """``90``, ``90s``, ``2m`` or ``1h`` in seconds; None for anything else, and for no time at all."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|)", text)
    if match is None or float(match[1]) == 0:
        return None
    return float(match[1]) * _UNITS[match[2]]
