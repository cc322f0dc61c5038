"""What a named scenario is."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
from hypothesis import strategies as st

from scenarios.capabilities import Capabilities
from scenarios.plans import Plan
from scenarios.strategies import plans
from scenarios.swarm import Profile

Draw = Callable[[random.Random, Capabilities], Profile]


FALLS_ASLEEP = ("--sleep-idle-seconds", "1")
"""As soon as llama-server falls asleep; it loads its files again when it wakes up."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One way to look for one kind of bug."""

    name: str
    summary: str
    reports: tuple[str, ...] = ()
    """Public reports that it stands for; a scenario without any is a control, clean on a sound server."""
    needs: tuple[str, ...] = ("complete",)
    """Kinds of operations that the server must be able to do."""
    profile: Draw
    """What the plans of one swarm round are made of."""
    lacks: Callable[[Capabilities], str | None] = lambda capabilities: None
    """Why this server cannot run it, beyond ``needs``; None where it can."""
    families: tuple[str, ...] = ()
    """Tiny models that show the bugs; empty: any."""
    settings: tuple[tuple[str, ...], ...] = ()
    """Settings of a launched server under which the bugs show, in llama-server's spelling."""
    affected: str = ""
    """Versions known to be affected, and known to be clean."""
    control: bool = False

    def missing(self, capabilities: Capabilities) -> str | None:
        """Why this server cannot run it; None where it can."""
        unable = [kind for kind in self.needs if kind not in capabilities.operations]
        if unable:
            return f"the server cannot do: {', '.join(unable)}"
        return self.lacks(capabilities)

    def round(self, rng: random.Random, capabilities: Capabilities) -> st.SearchStrategy[Plan]:
        """The strategy of one swarm round."""
        return plans(self.profile(rng, capabilities))


def no_adapter(capabilities: Capabilities) -> str | None:
    """What a scenario lacks on a server without adapters that a request can set."""
    if capabilities.adapters == 0:
        return "the server has no adapter loaded"
    if not capabilities.request_scales and not capabilities.adapter_names:
        return "requests cannot name adapters"
    return None
