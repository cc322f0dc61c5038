"""Whether a finding was given the kind of its mutant.

Some kinds look alike to whoever sees only requests and answers: a key in which two inputs collide and one that leaves
an input out, a prefix restored too far and one restored at the wrong place. Their findings share a name.
"""

from __future__ import annotations

from fuzzer.triage.kinds import Kind as Named
from fuzzer.zoo.mutants import Kind

_NAMES: dict[Kind, frozenset[Named]] = {
    Kind.KEY_OMITS_INPUT: frozenset({Named.KEY_OMITS_INPUT}),
    Kind.KEY_OMITS_VERSION: frozenset({Named.KEY_OMITS_VERSION}),
    Kind.KEY_COLLIDES: frozenset({Named.KEY_OMITS_INPUT}),
    Kind.GUARD_COMPARES_WRONG_THING: frozenset({Named.GUARD_COMPARES_WRONG_THING}),
    Kind.RESTORED_PAST_PREFIX: frozenset({Named.RESTORED_PAST_PREFIX}),
    Kind.RECURRENT_STATE_MISALIGNED: frozenset({Named.RESTORED_PAST_PREFIX}),
    Kind.INHERITED_STATE: frozenset({Named.INHERITED_STATE}),
    Kind.WRONG_POSITIONS: frozenset({Named.RESTORED_PAST_PREFIX}),
    Kind.IDENTITY_NOT_UPDATED: frozenset({Named.IDENTITY_NOT_UPDATED, Named.RESTORED_PAST_PREFIX, Named.ILLEGAL_REUSE}),
    Kind.INVALID_PUBLISHED: frozenset({Named.INVALID_DATA_PUBLISHED}),
    Kind.TIERS_DISAGREE: frozenset({Named.TIERS_DISAGREE}),
    Kind.OTHER_STATE_LEAKS: frozenset({Named.SAMPLING_STATE}),
}


def named_rightly(planted: Kind, named: str) -> bool:
    """Whether ``named``, the kind of a finding, is what a mutant of kind ``planted`` should be called."""
    return named in _NAMES[planted]
