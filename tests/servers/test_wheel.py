"""The engine's version names the llama.cpp build that would run."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from fuzzer.servers.launched import LlamaLaunch
from fuzzer.servers.llama_flags import LlamaFlags
from fuzzer.servers.wheel import engine_version


@pytest.fixture
def wheel_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "xllamacpp"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return package


def test_the_last_number_of_the_wheels_version_is_the_build() -> None:
    installed = version("xllamacpp")
    assert engine_version() == f"b{installed.split('.')[-1]} (xllamacpp {installed})"


def test_a_folder_put_before_the_installed_wheel_counts(wheel_in_a_folder: Path) -> None:
    metadata = wheel_in_a_folder.parent / "xllamacpp-2026.4.8672.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: xllamacpp\nVersion: 2026.4.8672\n")
    assert engine_version() == "b8672 (xllamacpp 2026.4.8672)"


def test_a_bare_folder_has_its_version_in_a_file(wheel_in_a_folder: Path) -> None:
    (wheel_in_a_folder / "_version.py").write_text('version_json = """{"version": "2026.5.9093"}"""')
    assert engine_version() == "b9093 (xllamacpp 2026.5.9093)"


def test_a_folder_that_does_not_tell_is_called_unknown(wheel_in_a_folder: Path) -> None:
    assert engine_version() == "unknown build (xllamacpp)"


def test_a_folder_that_is_named_counts(tmp_path: Path) -> None:
    package = tmp_path / "xllamacpp"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_version.py").write_text('version_json = """{"version": "2026.5.9093"}"""')
    assert engine_version(tmp_path) == "b9093 (xllamacpp 2026.5.9093)"


def test_a_child_gets_the_wheel_of_a_folder_before_the_installed_one(tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").touch()
    environment = LlamaLaunch(LlamaFlags(), wheel=tmp_path).environment()
    found = "import xllamacpp, fuzzer; print(xllamacpp.__file__)"
    said = subprocess.run(
        [sys.executable, "-P", "-c", found], env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == str(tmp_path / "xllamacpp.py")
