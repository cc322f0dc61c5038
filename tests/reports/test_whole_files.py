"""Files are whole at any time."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from reports.folder import write_atomically


def test_a_reader_never_meets_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    contents = {bytes([letter]) * 200_000 for letter in b"abc"}
    write_atomically(path, b"a" * 200_000)
    seen: set[bytes] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(30):
        for content in sorted(contents):
            write_atomically(path, content)
    done.set()
    reader.join()
    assert seen <= contents
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
