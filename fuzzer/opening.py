"""The opening of a campaign: the shapes of public reports, which cost a second and of which most bugs are kin."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.library.public_shapes import LENGTHS, SHAPES, Shape
from scenarios.plans import Plan
from scenarios.scenario import Scenario


class Known(msgspec.Struct, frozen=True):
    """The plan of a shape at one length, and the scenario that stands for it."""

    shape: Shape
    scenario: Scenario
    plan: Plan


class Opening:
    """The shapes that are still worth running: one that diverged shows its bug again whenever it runs."""

    def __init__(self) -> None:
        self._spent: set[Shape] = set()

    def drawn(self, scenarios: Sequence[Scenario], capabilities: Capabilities, rng: random.Random) -> list[Known]:
        """Each shape of these scenarios that the server can run, at a length drawn for it."""
        by_name = {scenario.name: scenario for scenario in scenarios}
        drawn: list[Known] = []
        for shape in SHAPES:
            length = rng.choice(LENGTHS)
            if shape.scenario not in by_name or shape in self._spent:
                continue
            plan = shape.fitted(length, capabilities)
            drawn += [Known(shape, by_name[shape.scenario], plan)] if plan is not None else []
        return drawn

    def diverged(self, known: Known) -> None:
        """Leave the shape out from now on."""
        self._spent.add(known.shape)
