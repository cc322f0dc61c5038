"""Block and continue: a round leaves out one necessary element of each bug that is already known.

A shallow bug is met again in every round and hides the deeper ones behind it. Left out is one element a bug and a
round, at random, so that a second bug which shares all but one element with the first is still reached.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from scenarios.operations import KINDS, Sampling
from scenarios.swarm import Profile

_ENVIRONMENT = ("scale-change", "adapter-change")
_BETWEEN = ("request-between", "setting-between")
_GROUPS = {"start": ("start", "brief", "lasting", "await", "join", "abort"), "save": ("save", "restore")}


def blocked(profile: Profile, known: Sequence[Sequence[str]], rng: random.Random) -> Profile:
    """The profile without one necessary element of each known bug; as it is where none can be left out."""
    for elements in known:
        able = [element for element in elements if can_block(element)]
        if able:
            profile = _without(profile, rng.choice(able), rng)
    return profile


def can_block(element: str) -> bool:
    """Whether plans can be drawn without an element."""
    special = ("salt-change", "growth", "pin", "sampling", "empty-list", "left-out", "partial-list", "cut-back")
    return element in (*_ENVIRONMENT, *_BETWEEN, *special) or element in KINDS


def _without(profile: Profile, element: str, rng: random.Random) -> Profile:
    if element in _ENVIRONMENT:
        return _one_environment(profile, rng)
    if element in _BETWEEN:
        # Prompts of one tree find the same slot, so that none pushes another out of it.
        return msgspec.structs.replace(_without_kinds(profile, ("evict",)), roots=1)
    if element in KINDS:
        return _without_kinds(profile, _GROUPS.get(element, (element,)))
    if element == "cut-back":
        # An answer of two tokens leaves state behind that a longer prompt would have to cut back.
        return msgspec.structs.replace(profile, cut_backs=False, answers=(1,))
    if element == "growth":
        return _without_kinds(profile, ("grow",))
    if element == "pin":
        return msgspec.structs.replace(profile, slots=())
    if element == "sampling":
        return msgspec.structs.replace(profile, samplings=(Sampling.PLAIN,))
    if element == "salt-change":
        return msgspec.structs.replace(profile, salts=profile.salts[:1])
    return _without_spelling(profile, element)


def _one_environment(profile: Profile, rng: random.Random) -> Profile:
    explicit = [spelling for spelling in profile.spellings if spelling is not None]
    one = rng.choice(explicit) if explicit else profile.spellings[0]
    kept = _without_kinds(profile, ("set_scales",))
    return msgspec.structs.replace(kept, spellings=(one,))


def _without_kinds(profile: Profile, kinds: Sequence[str]) -> Profile:
    kept = tuple(kind for kind in profile.kinds if kind not in kinds) or ("complete",)
    openings = tuple(opening for opening in profile.openings if not set(opening) & set(kinds)) or ((),)
    if "set_scales" in kinds:
        spellings = tuple(spelling for spelling in profile.spellings if spelling is not None)
        profile = msgspec.structs.replace(profile, spellings=spellings or profile.spellings, global_scales=())
    return msgspec.structs.replace(profile, kinds=kept, openings=openings)


def _without_spelling(profile: Profile, element: str) -> Profile:
    """The profile without requests that name no adapter, leave the field out, or name some of them."""
    longest = max((len(spelling) for spelling in profile.spellings if spelling is not None), default=0)
    match element:
        case "empty-list":
            kept = tuple(spelling for spelling in profile.spellings if spelling != ())
        case "left-out":
            kept = tuple(spelling for spelling in profile.spellings if spelling is not None)
        case _:
            kept = tuple(spelling for spelling in profile.spellings if not spelling or len(spelling) == longest)
    return msgspec.structs.replace(profile, spellings=kept or profile.spellings)
