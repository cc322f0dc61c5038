"""A user's own GGUF: what we read of it, and the sentence that answers a file that cannot work."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from gguf import GGUFWriter

from fuzzer.errors import UsageError
from fuzzer.models.gguf_facts import GGUFFacts, adapter_facts, model_facts, read_facts
from fuzzer.models.gguf_models import write_out
from fuzzer.models.tiny import NAMES, TinyModel, tiny_model


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return tiny_model("dense", cache=tmp_path_factory.mktemp("cache"))


def test_a_model(dense: TinyModel) -> None:
    assert model_facts(dense.path) == GGUFFacts(
        architecture="llama", vocabulary=2048, context=4096, window=None, recurrent=False, is_adapter=False
    )


def test_an_adapter(dense: TinyModel) -> None:
    facts = adapter_facts(dense.adapters[0])
    assert (facts.architecture, facts.is_adapter) == ("llama", True)


@pytest.mark.parametrize("name", NAMES)
def test_the_file_says_what_the_tiny_model_says(name: str, tmp_path: Path) -> None:
    model = tiny_model(name, cache=tmp_path)
    facts = model_facts(model.path)
    assert (facts.vocabulary, facts.window, facts.recurrent) == (model.vocabulary, model.window, model.recurrent)


def test_an_adapter_is_no_model(dense: TinyModel) -> None:
    with pytest.raises(UsageError, match="is an adapter, not a model; pass it with --adapter"):
        model_facts(dense.adapters[0])


def test_a_model_is_no_adapter(dense: TinyModel) -> None:
    with pytest.raises(UsageError, match="is a model, not an adapter; pass it with --model"):
        adapter_facts(dense.path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file .*absent\.gguf"):
        read_facts(tmp_path / "absent.gguf")


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_facts(tmp_path)


@pytest.mark.parametrize("content", [b"", b"GG", b"#!/bin/sh\n"])
def test_a_file_of_another_kind(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="does not begin with the letters GGUF"):
        read_facts(path)


def test_an_old_format_version(tmp_path: Path) -> None:
    path = tmp_path / "old.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 1, 0, 0))
    with pytest.raises(UsageError, match="format version is 1, not 2 or 3"):
        read_facts(path)


def test_a_download_that_stopped_anywhere_in_the_header(dense: TinyModel, tmp_path: Path) -> None:
    path, whole = tmp_path / "cut.gguf", dense.path.read_bytes()
    for length in range(4, 1500, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(UsageError, match="cut off or damaged"):
            read_facts(path)


@pytest.mark.parametrize("kind", [0, 4, 8, 9, 10, 99])
def test_an_array_longer_than_the_file(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "huge.gguf"
    key = struct.pack("<Q", 3) + b"key"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 2**63) + key + struct.pack("<IIQ", 9, kind, 2**63))
    with pytest.raises(UsageError, match="cut off or damaged"):
        read_facts(path)


def test_a_gguf_that_is_neither_model_nor_adapter(tmp_path: Path) -> None:
    path = tmp_path / "vision.gguf"
    writer = GGUFWriter(path, "clip")
    writer.add_type("mmproj")
    write_out(writer)
    with pytest.raises(UsageError, match="is a GGUF of type 'mmproj'"):
        read_facts(path)
