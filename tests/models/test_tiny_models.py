"""Tiny models by name: the same recipe gives the same bytes, from the cache or built again."""

from __future__ import annotations

import hashlib
import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import fuzzer
from fuzzer.errors import UsageError
from fuzzer.models.__main__ import export
from fuzzer.models.model_cache import cache_root
from fuzzer.models.tiny import NAMES, TinyModel, other_weights, tiny_model

# sha256 over model and adapters. A change here needs another format number in the recipe.
BYTES = {
    "tiny:dense:seed=0:format=1": "fedf0df3d6aafa701c5d574fd3a2eee654bf75ba7029b85d688348ff6f33772b",
    "tiny:swa:seed=0:format=1": "f05dd4aea9e90563cd2ccad5c08efd4053a096b3a8cbcd819687f725b4eaab84",
    "tiny:mamba:seed=0:format=1": "9fa7c436b41dac00c17782eabf5064a3a0dac209d0bd0906347811c4d3cd1f1a",
    "tiny:jamba:seed=0:format=1": "6dce605dcf5dfc6fcd199b5154a144686cc435e1eee5b64051256c9101518cf1",
    "tiny:lfm2:seed=0:format=1": "e63af6214ba706e6c19800e0b4e46eb677189cae4a9221f69cc6e8e38f77cee7",
}


def sha256(model: TinyModel) -> str:
    content = b"".join(path.read_bytes() for path in (model.path, *model.adapters))
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_names_the_bytes(name: str, tmp_path: Path) -> None:
    model = tiny_model(name, cache=tmp_path)
    assert sha256(model) == BYTES[model.recipe]


def test_another_seed_is_another_model(tmp_path: Path) -> None:
    model, other = tiny_model("dense", cache=tmp_path), tiny_model("dense", seed=1, cache=tmp_path)
    assert other.recipe == "tiny:dense:seed=1:format=1"
    assert model.path.read_bytes() != other.path.read_bytes()
    assert model.adapters[0].read_bytes() != other.adapters[0].read_bytes()


def test_a_model_brings_two_different_adapters(tmp_path: Path) -> None:
    first, second = tiny_model("dense", cache=tmp_path).adapters
    assert first.read_bytes() != second.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_other_weights_are_those_of_the_next_seed_under_a_name_of_their_own(name: str, tmp_path: Path) -> None:
    other = other_weights(name, cache=tmp_path)
    assert other.name == f"{name}-other-weights.gguf"
    assert other.read_bytes() == tiny_model(name, seed=1, cache=tmp_path).path.read_bytes()
    assert other_weights(name, cache=tmp_path) == other


def test_files_of_a_tiny_model_are_written_for_scripts(tmp_path: Path) -> None:
    export("dense", tmp_path)
    names = ["dense-adapter-1.gguf", "dense-adapter-2.gguf", "dense-other-weights.gguf", "dense.gguf"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_what_a_strategy_needs_to_know_comes_with_the_model(tmp_path: Path) -> None:
    models = [tiny_model(name, cache=tmp_path) for name in NAMES]
    assert {model.name: model.window for model in models if model.window} == {"swa": 32}
    assert [model.name for model in models if model.recurrent] == ["mamba", "jamba", "lfm2"]
    assert {model.vocabulary for model in models} == {2048}


def test_the_second_call_reads_the_cache(tmp_path: Path) -> None:
    model = tiny_model("dense", cache=tmp_path)
    written = model.path.stat().st_mtime_ns
    assert tiny_model("dense", cache=tmp_path) == model
    assert model.path.stat().st_mtime_ns == written


def _cut(model: TinyModel) -> None:
    model.path.write_bytes(model.path.read_bytes()[:1000])


def _flip_a_bit(model: TinyModel) -> None:
    content = bytearray(model.path.read_bytes())
    content[-1] ^= 1
    model.path.write_bytes(content)


def _lose_an_adapter(model: TinyModel) -> None:
    model.adapters[1].unlink()


def _stop_before_the_checksums(model: TinyModel) -> None:
    _cut(model)
    (model.path.parent / "SHA256SUMS").unlink()


def _empty_the_checksums(model: TinyModel) -> None:
    (model.path.parent / "SHA256SUMS").write_bytes(b"")


@pytest.mark.parametrize(
    "damage", [_cut, _flip_a_bit, _lose_an_adapter, _stop_before_the_checksums, _empty_the_checksums]
)
def test_a_damaged_entry_is_built_again(damage: Callable[[TinyModel], None], tmp_path: Path) -> None:
    model = tiny_model("dense", cache=tmp_path)
    damage(model)
    assert sha256(tiny_model("dense", cache=tmp_path)) == BYTES[model.recipe]
    assert len(list(model.path.parent.iterdir())) == 4


def test_processes_that_build_at_once_get_the_same_model(tmp_path: Path) -> None:
    build = partial(tiny_model, cache=tmp_path)
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        models = list(pool.map(build, ["dense"] * 3))
    assert {sha256(model) for model in models} == {BYTES[models[0].recipe]}


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'gpt'; choose one of dense, swa, mamba, jamba, lfm2"):
        tiny_model("gpt", cache=tmp_path)


def test_a_seed_below_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be -1"):
        tiny_model("dense", seed=-1, cache=tmp_path)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    with pytest.raises(UsageError, match="cannot write the tiny model to"):
        tiny_model("dense", cache=occupied)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG folders are for Linux")
def test_the_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_root() == tmp_path / "stalefuzz" / "models"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_root() == Path.home() / ".cache" / "stalefuzz" / "models"


def test_importing_the_names_imports_no_numpy() -> None:
    script = "import sys, fuzzer.models.tiny; sys.exit(len({'numpy', 'gguf'} & set(sys.modules)))"
    project = Path(fuzzer.__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", script], cwd=project, check=False).returncode == 0
