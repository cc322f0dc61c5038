"""What a named scenario is."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
from hypothesis import strategies as st

from scenarios.capabilities import Capabilities
from scenarios.plans import Plan
from scenarios.strategies import plans
from scenarios.swarm import Spelling, profile


class Scenario(msgspec.Struct, frozen=True):
    """One way to look for one kind of bug."""

    name: str
    summary: str
    reports: tuple[str, ...]
    """Public reports that it stands for."""
    spellings: Callable[[Capabilities], list[Spelling]]
    lacks: Callable[[Capabilities], str | None]
    """Why this server cannot run it; None where it can."""

    def round(self, rng: random.Random, capabilities: Capabilities) -> st.SearchStrategy[Plan]:
        """The strategy of one swarm round."""
        return plans(profile(rng, capabilities, self.spellings(capabilities)))
