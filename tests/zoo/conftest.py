"""No server outlives the module that started it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from zoo_server import join_stopped


@pytest.fixture(autouse=True, scope="module")
def _stopped_servers() -> Iterator[None]:
    yield
    join_stopped()
