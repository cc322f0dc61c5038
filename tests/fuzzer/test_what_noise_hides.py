"""A target whose rounding swallows the effect is said to be so, with what would help."""

from __future__ import annotations

import msgspec
import pytest
from making import SPACE

from fuzzer.calibration import Calibration, Numerics
from fuzzer.unseen import silent, swallowed
from oracles.bands import BANDS
from oracles.noise import Situation, Tail, measured
from reports.record import RoundingRecord
from reports.terminal import rounding_in_words
from scenarios.capabilities import Capabilities

WIDE = measured([(Situation(Tail.ONE), (0.45,) * len(BANDS))])
HIDDEN = Calibration(noise=WIDE, hits=3, silent_adapters=(0, 1))
SILENT_ABOUT_REUSE = Capabilities(space=SPACE, context=512, adapters=2, request_scales=True)


def test_an_adapter_that_rounding_hides_is_named_with_what_would_help() -> None:
    (told,) = silent(HIDDEN, Numerics.DEFAULT).items()
    assert told[0] == "adapters a and b"
    assert "rounding does here (up to 0.9)" in told[1]
    assert "by reuse accounting only; --numerics exact" in told[1]
    assert silent(msgspec.structs.replace(HIDDEN, silent_adapters=()), Numerics.DEFAULT) == {}


def test_what_was_tried_already_is_not_advised() -> None:
    (why,) = silent(HIDDEN, Numerics.EXACT).values()
    assert "--numerics" not in why


def test_where_neither_answers_nor_counts_can_show_it_the_run_says_that_it_cannot_judge() -> None:
    (why,) = swallowed(HIDDEN, Numerics.DEFAULT, SILENT_ABOUT_REUSE)
    assert "does not tell what it reuses" in why
    assert "--numerics exact" in why


@pytest.mark.parametrize(
    ("calibration", "capabilities"),
    [
        (HIDDEN, msgspec.structs.replace(SILENT_ABOUT_REUSE, cached_counts=True)),
        (HIDDEN, msgspec.structs.replace(SILENT_ABOUT_REUSE, adapters=0)),
        (msgspec.structs.replace(HIDDEN, silent_adapters=(0,)), SILENT_ABOUT_REUSE),
    ],
)
def test_where_anything_can_show_it_the_run_judges(calibration: Calibration, capabilities: Capabilities) -> None:
    assert swallowed(calibration, Numerics.DEFAULT, capabilities) == []


def test_what_was_taken_for_rounding_is_told() -> None:
    assert "3 differences beyond the bound, of up to 0.91, turned out to be rounding" in rounding_in_words(
        RoundingRecord(3, 0.912)
    )
