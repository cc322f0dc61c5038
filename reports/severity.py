"""How much a finding matters to whoever reads the server's answers."""

from __future__ import annotations

from enum import StrEnum

from reports.record import Divergence

LARGE = 0.1
"""Nats; a probability moved by a tenth changes what sampling draws."""


class Severity(StrEnum):
    """Worst first."""

    HIGH = "high"
    """Another token is chosen, or no answer comes at all: the text is wrong."""
    MEDIUM = "medium"
    """The same token is chosen from a visibly other distribution: sampled text is drawn wrongly."""
    LOW = "low"
    """Beyond rounding, but small."""


def severity_of(oracle: str, divergence: Divergence | None, delta: float | None) -> Severity:
    """Severity of a wrong answer; ``delta`` in nats."""
    if oracle in ("health", "tokens") or divergence is None or _another_token(divergence):
        return Severity.HIGH
    return Severity.MEDIUM if delta is not None and delta >= LARGE else Severity.LOW


def _another_token(divergence: Divergence) -> bool:
    return bool(divergence.gap)
