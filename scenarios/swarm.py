"""Swarm: each round draws from a random subset of what is possible.

A bug that hides when everything is mixed shows when only two things are on, so a round fixes few kinds of operations,
few environments, few lengths and few roots, and the next round fixes others.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from scenarios.capabilities import LASTING, Capabilities, lengths_that_matter
from scenarios.environment import AdapterScale
from scenarios.operations import Sampling

SCALES = (0.0, 0.01, 0.5, 1.0)
"""Off, nearly off, half, full."""
SALTS = ("", "tenant-1", "tenant-2", "a")
"""Tenant keys that a careless cache takes for one: none and some, two that begin alike, an adapter's name."""
_FILLER = 127
"""Tokens of the prompts that fill a whole cache."""
_SMALL_CACHE = 4096
"""Tokens of a cache that a plan can afford to fill."""
LONG = (40, 100, 200)
"""Lengths of segments that are not computed in one step: what overlaps or is cut off has to last."""
_ANSWER = 64
"""Tokens that are left for it."""
_RETURNING = ("complete", "evict", "complete")

Spelling = tuple[AdapterScale, ...] | None


def _lasting(tokens: int) -> tuple[int, ...]:
    return tokens // 3, tokens, tokens


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What the plans of one round are made of."""

    roots: int
    cut_backs: bool = True
    """Whether prompts may do anything but go on from all that was asked on their root before."""
    lengths: tuple[int, ...]
    """Of segments."""
    spellings: tuple[Spelling, ...]
    """Adapter scales as requests name them."""
    answers: tuple[int, ...]
    """Tokens asked for."""
    most: int
    """Operations a plan may have."""
    kinds: tuple[str, ...] = ("complete",)
    """Kinds of operations, each as often as it stands here."""
    openings: tuple[tuple[str, ...], ...] = ((),)
    """What a plan begins with, one of these: kinds in an order that a bug needs and chance rarely brings.

    A start is ``brief`` or ``lasting`` there where one is to end before another.
    """
    lasting: tuple[int, ...] = _lasting(LASTING)
    """Tokens, besides ``answers``, of a request that others are to overlap."""
    global_scales: tuple[tuple[AdapterScale, ...], ...] = ()
    """Values for the global scales; the first is set by the prologue."""
    slots: tuple[int, ...] = ()
    """Slots that requests may be pinned to."""
    samplings: tuple[Sampling, ...] = (Sampling.PLAIN,)
    """Each plan has one besides the plain one."""
    salts: tuple[str, ...] = ("",)
    adapters: int = 0
    versions: int = 2
    tasks: tuple[str, ...] = ()
    evictions: tuple[tuple[int, int], ...] = ((1, 8), (2, 24), (2, 64))
    """Number and length of the filler prompts of one eviction."""
    bare: bool = False
    """Whether a prompt may be its first token alone."""


def sizes(rng: random.Random, capabilities: Capabilities) -> tuple[int, ...]:
    """A few small lengths, sometimes with one next to a size of the target's own."""
    special = lengths_that_matter(capabilities)
    least = capabilities.block if capabilities.block > 1 else 1
    small = [length + least - 1 for length in rng.sample(range(1, 25), 3)]
    # A prompt is its root's token and its segments.
    whole = [length - 1 for length in rng.sample(special, min(len(special), rng.choice((0, 1, 2)))) if length > 1]
    return tuple(sorted({*small, *whole}))


def longer(rng: random.Random, plain: Profile, capabilities: Capabilities) -> tuple[int, ...]:
    """The lengths of a profile, half of the time most of them long ones."""
    able = long_lengths(capabilities)
    if not able or rng.random() < 0.5:
        return plain.lengths
    return tuple(sorted({*plain.lengths[:1], *rng.sample(able, min(2, len(able)))}))


def long_lengths(capabilities: Capabilities) -> list[int]:
    """Lengths of segments that are not computed in one step and of which a context takes three and an answer."""
    most = (capabilities.context - _ANSWER) // 3
    return sorted({min(length, most) for length in LONG if min(length, most) >= LONG[0]})


def evictions(capabilities: Capabilities) -> tuple[tuple[int, int], ...]:
    """Fillers that take a slot or two; enough of them for all that is cached, where that is told and little."""
    some = ((1, 8), (2, 24), (2, 64))
    size, longest = capabilities.cache_tokens, capabilities.context // 2 - 1
    if size is None or not can_be_emptied(capabilities):
        return some
    length = min(_FILLER, longest)
    return (*some, *(((1 + -(-size // length), length),) * 3))


def evicting(
    rng: random.Random, plain: Profile, capabilities: Capabilities, opening: tuple[str, ...] = _RETURNING
) -> Profile:
    """The profile with evictions, where a plan can empty the cache; elsewhere other prompts push out what they can.

    Some plans begin with ``opening``: only what comes back afterwards comes from a lower tier.
    """
    if not can_be_emptied(capabilities):
        return plain
    some = ("complete", "evict") if rng.random() < 0.3 else ()
    return msgspec.structs.replace(
        plain,
        kinds=(*plain.kinds, *some),
        evictions=plain.evictions[-1:],
        openings=(*plain.openings, opening),
    )


def can_be_emptied(capabilities: Capabilities) -> bool:
    """Whether a plan can afford to fill the whole cache."""
    return capabilities.cache_tokens is not None and capabilities.cache_tokens <= _SMALL_CACHE


def few(rng: random.Random, spellings: Sequence[Spelling]) -> tuple[Spelling, ...]:
    """Two to four of the spellings, two most often."""
    return tuple(rng.sample(list(spellings), min(len(spellings), rng.choice((2, 2, 3, 4)))))


def related(rng: random.Random, capabilities: Capabilities) -> tuple[tuple[AdapterScale, ...], ...]:
    """Two or three environments that a careless key takes for one: see ``_relative``."""
    spellings = explicit_spellings(capabilities)
    if not capabilities.request_scales or capabilities.adapters == 0:
        return tuple(rng.sample(spellings, min(len(spellings), rng.choice((2, 2, 3)))))
    base = _spelled({rng.randrange(capabilities.adapters): rng.choice(SCALES[1:])}, capabilities.adapters)
    others = [_relative(rng, base) for _ in range(rng.choice((1, 1, 2)))]
    return tuple(dict.fromkeys((base, *others)))


def _relative(rng: random.Random, base: tuple[AdapterScale, ...]) -> tuple[AdapterScale, ...]:
    """The base switched off, at another scale, with the scales on other adapters, or with one more adapter on."""
    scales = [scale.scale for scale in base]
    match rng.choice(("off", "scale", "scale", "moved", "added")):
        case "off":
            scales = [0.0 for _ in scales]
        case "scale":
            scales = [rng.choice([other for other in SCALES if other != scale]) if scale else 0.0 for scale in scales]
        case "moved":
            scales = scales[-1:] + scales[:-1]
        case _:
            scales = [scale or rng.choice(SCALES[1:]) for scale in scales]
    return tuple(AdapterScale(at, scale) for at, scale in enumerate(scales))


def profile(rng: random.Random, capabilities: Capabilities, spellings: Sequence[Spelling]) -> Profile:
    """Requests one after another, in environments from ``spellings``, all of them."""
    # Where nothing is cut back, a prompt that leaves an earlier one before its end is computed anew.
    grows = capabilities.whole_entries
    return Profile(
        roots=rng.choice((1, 1, 1, 2) if grows else (1, 2, 2, 3)),
        lengths=sizes(rng, capabilities),
        spellings=tuple(spellings),
        answers=tuple(rng.sample((1, 1, 2, 4, 8), 2)),
        most=rng.choice((4, 6, 8)),
        adapters=capabilities.adapters,
        evictions=evictions(capabilities),
        bare=rng.random() < 0.2,
        lasting=_lasting(capabilities.lasting),
        cut_backs=not grows or rng.random() < 0.3,
    )


def seldom(plain: Profile, kind: str) -> Profile:
    """Requests with an operation between them that takes as long as hundreds of them."""
    return msgspec.structs.replace(
        plain,
        roots=min(2, plain.roots),
        kinds=(*("complete",) * 7, kind),
        openings=(("complete", "complete", kind, "complete"),),
        most=8,
    )


def explicit_spellings(capabilities: Capabilities) -> list[tuple[AdapterScale, ...]]:
    """Every adapter named, at most two of them on; one at a time and fully on where requests can only name one.

    In the first of them all are off.
    """
    adapters = capabilities.adapters
    if not adapters:
        return [()]
    if not capabilities.request_scales:
        return [(), *((AdapterScale(adapter, 1.0),) for adapter in range(adapters))]
    spellings: list[tuple[AdapterScale, ...]] = []
    for first in range(adapters):
        for second in range(first, adapters):
            spellings += _pair(adapters, first, second)
    return list(dict.fromkeys(spellings))


def _spelled(on: dict[int, float], adapters: int) -> tuple[AdapterScale, ...]:
    return tuple(AdapterScale(at, on.get(at, 0.0)) for at in range(adapters))


def _pair(adapters: int, first: int, second: int) -> list[tuple[AdapterScale, ...]]:
    return [_spelled({first: one, second: other}, adapters) for one in SCALES for other in SCALES]
