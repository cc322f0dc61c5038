"""What is left out for a known bug leaves the way to its neighbours open."""

from __future__ import annotations

import random

import pytest
from making import SPACE, at_scales

from scenarios.blocking import blocked, can_block
from scenarios.capabilities import Capabilities
from scenarios.library import global_scale
from scenarios.swarm import Profile, Spelling

EVICTED = ("shared-prefix", "scale-change", "request-between", "setting-between")
"""The scale of an entry that another request pushed out of its slot."""
CAPABILITIES = Capabilities(SPACE, 4096, operations=("complete", "set_scales"), adapters=2, request_scales=True)

EVERY = at_scales(0.0, 1.0)
SOME = EVERY[1:]


def profiles(known: tuple[str, ...]) -> list[Profile]:
    drawn: list[Profile] = []
    for seed in range(40):
        rng = random.Random(seed)
        drawn.append(blocked(global_scale.SCENARIO.profile(rng, CAPABILITIES), [known], rng))
    return drawn


def test_a_bug_of_evicted_entries_does_not_hide_one_of_global_scales() -> None:
    drawn = profiles(EVICTED)
    reach = [one for one in drawn if "set_scales" in one.kinds and None in one.spellings and one.roots == 1]
    assert len(reach) >= len(drawn) // 3
    assert all(one.roots == 1 or len(one.spellings) == 1 for one in drawn)


@pytest.mark.parametrize("element", ["request-between", "setting-between"])
def test_nothing_comes_between_where_all_prompts_are_of_one_tree(element: str) -> None:
    plain = Profile(
        roots=3, lengths=(4,), spellings=(at_scales(0.0),), answers=(1,), most=4, kinds=("complete", "evict")
    )
    assert can_block(element)
    without = blocked(plain, [(element,)], random.Random(1))
    assert (without.roots, without.kinds) == (1, ("complete",))


def test_what_every_reuse_has_cannot_be_left_out() -> None:
    assert not can_block("shared-prefix")
    assert not can_block("request-before")


@pytest.mark.parametrize(
    ("element", "left"),
    [
        ("empty-list", (None, SOME, EVERY)),
        ("left-out", ((), SOME, EVERY)),
        ("partial-list", (None, (), EVERY)),
    ],
)
def test_a_way_to_name_adapters_is_left_out_and_no_other(element: str, left: tuple[Spelling, ...]) -> None:
    plain = Profile(roots=1, lengths=(4,), spellings=(None, (), SOME, EVERY), answers=(1,), most=4)
    assert blocked(plain, [(element,)], random.Random(1)).spellings == left
