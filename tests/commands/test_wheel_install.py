"""The wheel built from the tree does the job in an environment of its own, outside the tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = next(path for path in sys.path if path.endswith("site-packages"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(pip, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel alone in a fresh environment; what it depends on is lent by the one that runs this test."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    (site,) = (home / "lib").glob("python*/site-packages")
    # Behind its own folder, and without the .pth files there: the tree itself stays out of reach.
    (site / "lent.pth").write_text(SITE + "\n")
    return home / "bin"


def test_it_finds_the_bug(bin_folder: Path, tmp_path: Path) -> None:
    words = ["run", "-x", "--scenario", "adapter-scale", "--seed", "1"]
    # A folder of the user's that is called like one of ours must not be taken for it.
    (tmp_path / "fuzzer").mkdir()
    (tmp_path / "fuzzer" / "__init__.py").write_text("raise SystemExit('shadowed')")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(
        [bin_folder / "stalefuzz", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 1, run.stdout + run.stderr
    record = json.loads((tmp_path / "stalefuzz-out" / "run.json").read_text())
    assert [finding["operations"] for finding in record["findings"]] == [3]


def test_it_is_the_wheel_that_runs(bin_folder: Path, tmp_path: Path) -> None:
    code = "import fuzzer, scenarios, oracles, reports; print(fuzzer.__file__)"
    where = subprocess.run(
        [bin_folder / "python", "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert Path(where.stdout.strip()).is_relative_to(bin_folder.parent)
