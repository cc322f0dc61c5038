"""Memory of this process."""

from __future__ import annotations

from pathlib import Path
from resource import RUSAGE_SELF, getpagesize, getrusage

_STATM = Path("/proc/self/statm")


def resident_mb() -> float:
    """Memory of this process that is in RAM; the most it ever had, where the system does not tell of now."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * getpagesize() / 2**20
    return getrusage(RUSAGE_SELF).ru_maxrss / 2**20
