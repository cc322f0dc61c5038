"""Plans as a campaign draws them, always the same ones."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, seed, settings

from scenarios.plans import Plan
from scenarios.strategies import plans
from scenarios.swarm import Profile


def drawn(profile: Profile, number: int = 40) -> list[Plan]:
    """Plans within a profile."""
    found: list[Plan] = []

    @settings(
        max_examples=number,
        database=None,
        phases=(Phase.generate,),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @seed(1)
    @given(plans(profile))
    def collect(plan: Plan) -> None:
        found.append(plan)

    collect()
    return found
