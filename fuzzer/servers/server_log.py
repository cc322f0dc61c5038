"""The log of a launched server: a file without a name, so that no kill can leave it behind."""

from __future__ import annotations

import fcntl
import os
import tempfile
from typing import IO

TAIL_BYTES = 64 * 1024


class ServerLog:
    """What a server writes to standard error; the lifeline in the child keeps it short, the parent reads its tail."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        # Several processes write, and one may cut it: each write must go to wherever the end is by then.
        flags = fcntl.fcntl(self._file, fcntl.F_GETFL)
        fcntl.fcntl(self._file, fcntl.F_SETFL, flags | os.O_APPEND)

    def fileno(self) -> int:
        return self._file.fileno()

    def tail(self, lines: int) -> str:
        size = os.fstat(self.fileno()).st_size
        # The descriptor, and so its offset, is shared with the server: read beside the offset.
        last = os.pread(self.fileno(), TAIL_BYTES, max(0, size - TAIL_BYTES))
        return "\n".join(last.decode("utf-8", "replace").splitlines()[-lines:])

    def close(self) -> None:
        self._file.close()
