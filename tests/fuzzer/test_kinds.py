"""Which kind of bug the necessary elements of a plan make."""

from __future__ import annotations

import pytest

from fuzzer.triage.kinds import Kind, kind_of, title_of
from oracles.attribution import Element
from oracles.judgement import Oracle
from reports.prose import CAUSES


@pytest.mark.parametrize(
    ("elements", "kind"),
    [
        ({Element.SCALE_CHANGE}, Kind.KEY_OMITS_INPUT),
        ({Element.SALT_CHANGE}, Kind.KEY_OMITS_INPUT),
        ({Element.VERSION_CHANGE, Element.RELOAD}, Kind.KEY_OMITS_VERSION),
        ({Element.SHARED_PREFIX, Element.RELOAD}, Kind.KEY_OMITS_VERSION),
        ({Element.SCALE_CHANGE, Element.REQUEST_BETWEEN}, Kind.TIERS_DISAGREE),
        ({Element.WEIGHTS_CHANGE, Element.RELOAD_WEIGHTS, Element.EVICT}, Kind.TIERS_DISAGREE),
        ({Element.SCALE_CHANGE, Element.REQUEST_BETWEEN, Element.SETTING_BETWEEN}, Kind.GUARD_COMPARES_WRONG_THING),
        ({Element.SCALE_CHANGE, Element.GLOBAL_SCALES}, Kind.GUARD_COMPARES_WRONG_THING),
        ({Element.ADAPTER_CHANGE, Element.PIN}, Kind.GUARD_COMPARES_WRONG_THING),
        ({Element.SHARED_PREFIX, Element.CUT_BACK}, Kind.RESTORED_PAST_PREFIX),
        ({Element.SHARED_PREFIX, Element.GROWTH}, Kind.INVALID_DATA_PUBLISHED),
        ({Element.SHARED_PREFIX, Element.GROWTH, Element.CUT_BACK}, Kind.RESTORED_PAST_PREFIX),
        ({Element.ABORT, Element.OVERLAP}, Kind.INVALID_DATA_PUBLISHED),
        ({Element.SLEEP}, Kind.IDENTITY_NOT_UPDATED),
        ({Element.ERASE}, Kind.IDENTITY_NOT_UPDATED),
        ({Element.SAMPLING}, Kind.SAMPLING_STATE),
    ],
)
def test_kinds_of_wrong_reuse(elements: set[Element], kind: Kind) -> None:
    assert kind_of(Oracle.LOGPROBS, tuple(elements), 5) is kind


def test_an_aborted_request_that_leaves_state_without_a_hit_publishes_nothing() -> None:
    assert kind_of(Oracle.LOGPROBS, (Element.ABORT, Element.OVERLAP), 0) is Kind.INHERITED_STATE


def test_what_needs_no_hit_but_company_may_be_the_neighbours() -> None:
    assert "of a request beside it or of a recycled slot" in title_of(Oracle.LOGPROBS, (Element.OVERLAP,), 0)
    assert "of a recycled slot" in title_of(Oracle.LOGPROBS, (Element.REQUEST_BEFORE,), 0)


def test_weights_that_stay_under_a_name_are_no_odd_spelling() -> None:
    assert kind_of(Oracle.METAMORPHIC, (Element.UNLOAD,), 0) is Kind.KEY_OMITS_VERSION
    assert "unloaded" in title_of(Oracle.METAMORPHIC, (Element.UNLOAD,), 0)
    assert kind_of(Oracle.METAMORPHIC, (Element.EMPTY_LIST,), 0) is Kind.SPELLINGS_DIFFER


def test_every_kind_has_its_cause_in_words() -> None:
    assert set(CAUSES) == set(Kind)
