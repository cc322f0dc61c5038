"""Hypothesis strategies: plans within a profile.

Every draw costs time that the servers spend idle, so a request is one draw from the menu of all that the plan's
prompts and the profile allow, not one draw for each of its fields.
"""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

from scenarios.operations import Complete, Operation
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment
from scenarios.swarm import Profile


def plans(profile: Profile) -> st.SearchStrategy[Plan]:
    """Plans over a small tree of prompts, so that prefixes are shared, forked and asked again."""
    trees = list(product(profile.lengths, profile.lengths))

    @st.composite
    def draw_plan(draw: st.DrawFn) -> Plan:
        shapes = [draw(st.sampled_from(trees)) for _ in range(profile.roots)]
        prompts = [prompt for root, (trunk, branch) in enumerate(shapes) for prompt in _tree(root, trunk, branch)]
        count = draw(st.integers(2, profile.most))
        menu = st.sampled_from(_menu(prompts, profile))
        return Plan(tuple(draw(menu) for _ in range(count)))

    return draw_plan()


def _tree(root: int, trunk: int, branch: int) -> list[Prompt]:
    """A trunk, a branch that goes on from it, and one that leaves it early."""
    fork = max(1, trunk - branch)
    return [
        Prompt(root, (Segment("a", trunk),)),
        Prompt(root, (Segment("a", trunk), Segment("b", branch))),
        Prompt(root, (Segment("a", fork), Segment("c", branch))),
    ]


def _menu(prompts: list[Prompt], profile: Profile) -> list[Operation]:
    return [Complete(*choice) for choice in product(prompts, profile.spellings, profile.answers)]
