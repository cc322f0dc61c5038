"""Model and adapters of one server process in places of its own, where other versions can be put while it runs.

A place is a link, swapped in one step: whoever opens it gets one version whole, and files that are in use stay as they
are, which a server may have mapped into memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from fuzzer.errors import CannotJudge
from fuzzer.servers.adapter_versions import VERSIONS, version_of, version_path
from fuzzer.servers.protocol import Put
from reports.reproduce.model_names import OTHER_WEIGHTS


class OwnFiles:
    """Places below ``folder`` for one process at a time.

    ``weights`` are the model's versions, the first one first; version v of an adapter is the file v places on.
    """

    def __init__(self, folder: Path, weights: Sequence[Path], adapters: Sequence[Path]) -> None:
        self._folder = folder
        self._weights = [str(path.absolute()) for path in weights]
        self._files = [str(path.absolute()) for path in adapters]
        self.model = str(folder / "model" / weights[0].name)
        self.adapters = [str(folder / f"adapter-{at}" / path.name) for at, path in enumerate(adapters, 1)]

    @property
    def variables(self) -> dict[str, str]:
        """What a reproducer calls each file and each place."""
        names = dict.fromkeys(self._weights[1:], OTHER_WEIGHTS)
        names |= dict.fromkeys((self._weights[0], self.model), "MODEL")
        for at, pair in enumerate(zip(self._files, self.adapters, strict=True), 1):
            names |= dict.fromkeys(pair, f"ADAPTER_{at}")
        return names

    def weights(self, version: int) -> Put:
        """Other weights in the model's place."""
        return Put(self.model, version_of(self._weights, version))

    def adapter(self, adapter: int, version: int) -> Put:
        """Other weights in an adapter's place."""
        return Put(self.adapters[adapter], version_path(self._files, adapter, version % VERSIONS))

    def lay_out(self) -> None:
        """The first version of each file in its place, for a process that starts."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for first in (self.weights(0), *(self.adapter(at, 0) for at in range(len(self.adapters)))):
            Path(first.place).parent.mkdir(exist_ok=True)
            put_in_place(first)

    def remove(self) -> None:
        """No process needs them any more."""
        shutil.rmtree(self._folder, ignore_errors=True)


def put_in_place(put: Put) -> None:
    """Let whoever opens ``put.place`` from now on get ``put.file``; raises CannotJudge where the disk does not."""
    place = Path(put.place)
    beside = place.with_name(f"next-{place.name}")
    try:
        beside.unlink(missing_ok=True)
        beside.symlink_to(put.file)
        beside.replace(place)
    except OSError as error:
        raise CannotJudge(f"no other file could be put in the place of {place}: {error.strerror}") from None
