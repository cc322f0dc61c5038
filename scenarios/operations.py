"""Operations: each one thing done to a server, as data."""

from __future__ import annotations

import msgspec

from scenarios.environment import AdapterScale, Environment, adapter_letter, environment
from scenarios.prompts import Prompt


class Complete(msgspec.Struct, frozen=True, tag="complete", tag_field="op"):
    """A greedy completion of ``tokens`` tokens, with the scale of each adapter named in the request."""

    prompt: Prompt
    scales: tuple[AdapterScale, ...] = ()
    tokens: int = 1

    @property
    def environment(self) -> Environment:
        """What the answer may depend on besides the prompt."""
        return environment(self.scales)


Operation = Complete
"""Every kind of operation; a union once there is more than one."""


def kind(operation: Operation) -> str:
    """The name of the operation's kind, as in plan files and in coverage tables."""
    return str(operation.__struct_config__.tag)


def scales_in_words(scales: tuple[AdapterScale, ...]) -> str:
    """``a=0.5`` or ``a=0.5 b=1``; ``a=0`` where adapters are named and all are off; empty where none is named."""
    on = [f"{adapter_letter(scale.adapter)}={scale.scale:g}" for scale in scales if scale.scale != 0]
    return " ".join(on) if on or not scales else f"{adapter_letter(scales[0].adapter)}=0"
