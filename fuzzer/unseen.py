"""What a run cannot see: in rounding as large as what there is to see, or where the target is its own reference."""

from __future__ import annotations

from fuzzer.calibration import Calibration, Numerics, in_words
from fuzzer.reference import ReferenceMode
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


def beside_itself(mode: str, capabilities: Capabilities) -> dict[str, str]:
    """What a target that is its own reference does not show, and why; nothing where the reference is another server."""
    if mode != ReferenceMode.BYPASS:
        return {}
    alike = "the target is its own reference, so both answers may be wrong alike"
    hidden = {"state that is inherited without reuse": alike}
    if {"reload", "unload", "reload_weights"}.intersection(capabilities.operations):
        gone = "the target is its own reference, and has them no more when it is asked again"
        hidden |= {"old weights that stay after others were loaded": alike, "versions that a plan replaced later": gone}
    return hidden


def _help(numerics: Numerics) -> str:
    return "" if numerics is Numerics.EXACT else "; --numerics exact, or its flags on a server of yours, may help"
