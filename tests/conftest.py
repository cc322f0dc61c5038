from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A session shares no cache with the user: what is kept there would change what tests see, and the other way."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def no_calibration(cache_of_its_own: Path) -> None:
    """Each test measures for itself; tiny models, which are the same bytes always, are kept for all."""
    shutil.rmtree(cache_of_its_own / "stalefuzz" / "calibration", ignore_errors=True)
