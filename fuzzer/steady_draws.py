"""Hypothesis draws that the seed alone decides.

Hypothesis mixes in constants that it finds in the local source files imported so far. Which those are differs between a
clone and an installed wheel, and with threads that import while plans are drawn even from run to run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from hypothesis.internal.conjecture.providers import HypothesisProvider

_DRAWS_CONSTANT = "_maybe_draw_constant"


@contextmanager
def steady_draws() -> Iterator[None]:
    """Within, tests that Hypothesis runs draw the same for the same seed, whatever was imported and wherever.

    Hypothesis has no setting for it. A backend of our own would not do: Hypothesis draws the beginnings of new examples
    with its default whatever the backend, and steers towards targets with the default only. A version without the
    method that we replace draws as it likes.
    """
    if not hasattr(HypothesisProvider, _DRAWS_CONSTANT):
        yield
        return
    with patch.object(HypothesisProvider, _DRAWS_CONSTANT, _none):
        yield


def _none(*_args: object, **_options: object) -> None:
    return None
