"""What a run cannot see on a target whose rounding is as large as what there is to see, and what would help."""

from __future__ import annotations

from fuzzer.calibration import Calibration, Numerics, in_words
from scenarios.capabilities import Capabilities


def silent(calibration: Calibration, numerics: Numerics) -> dict[str, str]:
    """The adapters that comparing answers cannot tell from none, and why."""
    if not calibration.silent_adapters:
        return {}
    why = f"moves the logprobs by no more than rounding does here (up to {calibration.noise.bound():.2g})"
    return {in_words(calibration.silent_adapters): f"{why}, so by reuse accounting only{_help(numerics)}"}


def swallowed(calibration: Calibration, numerics: Numerics, capabilities: Capabilities) -> list[str]:
    """Why nothing about adapters could be judged, where that is so."""
    told = capabilities.cached_counts and not capabilities.approximate_reuse
    if told or not capabilities.adapters or len(calibration.silent_adapters) < capabilities.adapters:
        return []
    return [
        f"rounding here (up to {calibration.noise.bound():.2g}) is as large as what any adapter does, and the server "
        f"does not tell what it reuses, so neither answers nor counts could show a stale adapter{_help(numerics)}"
    ]


def _help(numerics: Numerics) -> str:
    return "" if numerics is Numerics.EXACT else "; --numerics exact, or its flags on a server of yours, may help"
