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
    IDENTITY_NOT_UPDATED = "identity-not-updated"
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
_LOADS = {Element.RELOAD, Element.UNLOAD, Element.RELOAD_WEIGHTS}
"""A minimal plan has these only where it matters which weights were loaded."""
_ROUTES = {Element.SETTING_BETWEEN, Element.GLOBAL_SCALES, Element.PIN}
"""The same change is told apart on another route, so that the key holds it and the check does not."""
_LOWER = {Element.RESTORE, Element.EVICT, Element.REQUEST_BETWEEN}
"""What takes state through a lower tier and back."""
_DISCARDS = {Element.SLEEP, Element.ERASE, Element.FLUSH}
_SPELLINGS = {
    Element.EMPTY_LIST: "an empty adapter list",
    Element.LEFT_OUT: "adapters left out",
    Element.PARTIAL_LIST: "a partial adapter list",
}


def kind_of(oracle: Oracle, necessary: tuple[Element, ...], reused: int | None) -> Kind:
    """The kind that the necessary elements make."""
    elements = set(necessary)
    if oracle is Oracle.HEALTH:
        return Kind.HEALTH
    if oracle is Oracle.METAMORPHIC:
        return Kind.KEY_OMITS_VERSION if elements & _LOADS else Kind.SPELLINGS_DIFFER
    if elements & (_CHANGES.keys() | _LOADS):
        return _of_change(elements)
    return _without_change(oracle, elements, reused)


def _of_change(elements: set[Element]) -> Kind:
    """What was not told apart, and where: in the key, in the check before reuse, or in the tier below only."""
    if elements & _ROUTES:
        return Kind.GUARD_COMPARES_WRONG_THING
    if elements & _LOWER:
        return Kind.TIERS_DISAGREE
    return Kind.KEY_OMITS_VERSION if elements & (_VERSIONS | _LOADS) else Kind.KEY_OMITS_INPUT


def _without_change(oracle: Oracle, elements: set[Element], reused: int | None) -> Kind:
    if Element.SAMPLING in elements:
        return Kind.SAMPLING_STATE
    if elements & _DISCARDS:
        return Kind.IDENTITY_NOT_UPDATED
    if not reused:
        return Kind.INHERITED_STATE
    if elements & {Element.ABORT, Element.OVERLAP} or _goes_on(elements):
        return Kind.INVALID_DATA_PUBLISHED
    if elements & {Element.RESTORE, Element.EVICT}:
        return Kind.TIERS_DISAGREE
    return Kind.ILLEGAL_REUSE if oracle is Oracle.ACCOUNTING else Kind.RESTORED_PAST_PREFIX


def _goes_on(elements: set[Element]) -> bool:
    """Whether an answer's end is reused, which was chosen and never computed with, and nothing was cut back."""
    return Element.GROWTH in elements and Element.CUT_BACK not in elements


def title_of(oracle: Oracle, necessary: tuple[Element, ...], reused: int | None) -> str:
    """One line that says what was not told apart."""
    if oracle is Oracle.HEALTH:
        return "no answer that can be judged"
    if oracle is Oracle.METAMORPHIC and set(necessary) & _LOADS:
        return "an adapter unloaded and loaded again is not one replaced in place"
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
    if not reused and Element.OVERLAP in necessary:
        return "a request beside it or of a recycled slot, without a cache hit"
    if not reused:
        return "a recycled slot, without a cache hit"
    if Element.REQUEST_BETWEEN in necessary or Element.EVICT in necessary:
        return "an evicted entry"
    return "a prefix reused after global scales changed" if Element.GLOBAL_SCALES in necessary else "a reused prefix"
