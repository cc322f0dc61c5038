"""What kind of bug a finding is, and its title; the kinds are those under which public reports are filed."""

from __future__ import annotations

from enum import StrEnum

from oracles.attribution import Element
from oracles.judgement import Oracle


class Kind(StrEnum):
    """Kinds of stale-state bugs."""

    KEY_OMITS_INPUT = "key-omits-input"
    KEY_OMITS_VERSION = "key-omits-version"
    GUARD_COMPARES_WRONG_THING = "guard-compares-wrong-thing"
    RESTORED_PAST_PREFIX = "restored-past-prefix"
    INHERITED_STATE = "inherited-state"
    INVALID_DATA_PUBLISHED = "invalid-data-published"
    TIERS_DISAGREE = "tiers-disagree"
    SAMPLING_STATE = "sampling-state"
    SPELLINGS_DIFFER = "spellings-differ"
    ILLEGAL_REUSE = "illegal-reuse"
    HEALTH = "health"


_CHANGES = {
    Element.SCALE_CHANGE: "adapter scale",
    Element.ADAPTER_CHANGE: "adapter",
    Element.VERSION_CHANGE: "adapter version",
    Element.SALT_CHANGE: "tenant key",
    Element.WEIGHTS_CHANGE: "weights version",
}
_VERSIONS = {Element.VERSION_CHANGE, Element.WEIGHTS_CHANGE}
_SPELLINGS = {
    Element.EMPTY_LIST: "an empty adapter list",
    Element.LEFT_OUT: "adapters left out",
    Element.PARTIAL_LIST: "a partial adapter list",
}


def kind_of(oracle: Oracle, necessary: tuple[Element, ...], reused: int | None) -> Kind:
    """The kind that the necessary elements make."""
    if oracle is Oracle.HEALTH:
        return Kind.HEALTH
    if oracle is Oracle.METAMORPHIC:
        return Kind.SPELLINGS_DIFFER
    if Element.SETTING_BETWEEN in necessary:
        return Kind.GUARD_COMPARES_WRONG_THING
    if _VERSIONS & set(necessary):
        return Kind.KEY_OMITS_VERSION
    if _CHANGES.keys() & set(necessary):
        return Kind.KEY_OMITS_INPUT
    return _without_change(oracle, necessary, reused)


def _without_change(oracle: Oracle, necessary: tuple[Element, ...], reused: int | None) -> Kind:
    if Element.SAMPLING in necessary:
        return Kind.SAMPLING_STATE
    if Element.ABORT in necessary:
        return Kind.INVALID_DATA_PUBLISHED
    if Element.RESTORE in necessary:
        return Kind.TIERS_DISAGREE
    if not reused:
        return Kind.INHERITED_STATE
    return Kind.ILLEGAL_REUSE if oracle is Oracle.ACCOUNTING else Kind.RESTORED_PAST_PREFIX


def title_of(oracle: Oracle, necessary: tuple[Element, ...], reused: int | None) -> str:
    """One line that says what was not told apart."""
    if oracle is Oracle.HEALTH:
        return "no answer that can be judged"
    if oracle is Oracle.METAMORPHIC:
        spelling = next((words for element, words in _SPELLINGS.items() if element in necessary), "another spelling")
        return f"{spelling} is not all scales zero"
    changes = [words for element, words in _CHANGES.items() if element in necessary]
    what = " and ".join(changes) or "stale state"
    return f"{what} of {_where(necessary, reused)}"


def _where(necessary: tuple[Element, ...], reused: int | None) -> str:
    for element, words in (
        (Element.RESTORE, "a restored slot"),
        (Element.ABORT, "an aborted request"),
        (Element.SLEEP, "before a sleep"),
        (Element.RESTART, "before a restart"),
    ):
        if element in necessary:
            return words
    if not reused:
        return "a recycled slot, without a cache hit"
    if Element.REQUEST_BETWEEN in necessary or Element.EVICT in necessary:
        return "an evicted entry"
    return "a prefix reused after global scales changed" if Element.GLOBAL_SCALES in necessary else "a reused prefix"
