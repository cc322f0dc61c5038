"""Calibrations kept between commands: re-used for the same target, never trusted, measured again on any change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from running import stalefuzz

from fuzzer.bring_up import bring_up
from fuzzer.calibrated import calibrated
from fuzzer.calibration import CEILING, Numerics
from fuzzer.calibration_store import CalibrationStore
from fuzzer.differential import Differential
from fuzzer.identity import digest_of, program_in
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from oracles.bands import BANDS
from oracles.noise import ENOUGH, Noise, Situation, Tail, measured
from reports.record import Settings

NAME = "0123456789abcdef"
CEIL = CEILING[Numerics.EXACT]
NOISE = measured(
    [(Situation(Tail.COLD), (0.0,) * len(BANDS))] + [(Situation(Tail.ONE), (1e-7, 0.0, 1e-6, 1e-5, 4e-5))] * ENOUGH
)


@pytest.fixture
def store(tmp_path: Path) -> CalibrationStore:
    store = CalibrationStore(tmp_path)
    store.keep(NAME, NOISE)
    return store


def test_what_was_kept_comes_back_whole(store: CalibrationStore) -> None:
    entry = store.read(NAME, CEIL)
    assert entry is not None
    assert entry.noise == NOISE
    assert store.read("fedcba9876543210", CEIL) is None


def edited(change: Callable[[dict[str, object]], object], path: Path) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry["classes"][1]["seen"].__setitem__(1, 5e-3),
        lambda entry: entry.update(measured="2001-01-01"),
        lambda entry: entry.update(format=0),
        lambda entry: entry.update(classes=[]),
        lambda entry: entry.update(more=1),
        lambda entry: entry.pop("seal"),
    ],
)
def test_an_edited_file_is_as_good_as_none(
    store: CalibrationStore, tmp_path: Path, change: Callable[[dict[str, object]], object]
) -> None:
    edited(change, tmp_path / f"{NAME}.json")
    assert store.read(NAME, CEIL) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b" " * 100_000])
def test_a_file_of_another_kind_is_as_good_as_none(store: CalibrationStore, tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"{NAME}.json").write_bytes(content)
    assert store.read(NAME, CEIL) is None


def test_the_file_of_another_target_is_as_good_as_none(store: CalibrationStore, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.json").rename(tmp_path / "other.json")
    assert store.read("other", CEIL) is None


@pytest.mark.parametrize("largest", [2 * CEIL, float("inf"), float("nan"), -1.0])
def test_what_no_calibration_gives_is_not_believed(tmp_path: Path, largest: float) -> None:
    store = CalibrationStore(tmp_path)
    bound = msgspec.structs.replace(NOISE.bounds[0], largest=largest)
    store.keep(NAME, Noise((bound,)))
    assert store.read(NAME, CEIL) is None


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = CalibrationStore(tmp_path / "file")
    store.keep(NAME, NOISE)
    assert store.read(NAME, CEIL) is None


SETTINGS = Settings("llama.cpp", "b11549", ["--parallel", "1"], "tiny:dense", ["tiny:dense:adapter=0"], "exact")


@pytest.mark.parametrize(
    "other",
    [
        msgspec.structs.replace(SETTINGS, version="b11550"),
        msgspec.structs.replace(SETTINGS, model="sha256:00"),
        msgspec.structs.replace(SETTINGS, adapters=[]),
        msgspec.structs.replace(SETTINGS, flags=["--parallel", "2"]),
        msgspec.structs.replace(SETTINGS, numerics="default"),
    ],
)
def test_another_target_has_another_name(other: Settings) -> None:
    assert digest_of(SETTINGS, "xllamacpp", ()) == digest_of(SETTINGS, "xllamacpp", ())
    assert digest_of(other, "xllamacpp", ()) != digest_of(SETTINGS, "xllamacpp", ())


def test_another_build_or_flag_has_another_name(tmp_path: Path) -> None:
    binary = tmp_path / "llama-server"
    binary.write_text("one build")
    before = digest_of(SETTINGS, program_in(binary), ())
    assert digest_of(SETTINGS, program_in(binary), ("--new-flag",)) != before
    binary.write_text("another build")
    assert digest_of(SETTINGS, program_in(binary), ()) != before


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Rig, Differential]]:
    with ExitStack() as stack:
        rig = Rig(ServerOptions())
        yield rig, bring_up(rig, stack)[0]


def kept_file(cache: Path) -> Path:
    (path,) = (cache / "stalefuzz" / "calibration").iterdir()
    return path


def test_the_second_command_re_uses_what_the_first_measured(
    servers: tuple[Rig, Differential], cache_of_its_own: Path
) -> None:
    rig, differential = servers
    first, before = calibrated(differential, rig), differential.counts.target
    second, after = calibrated(differential, rig), differential.counts.target
    assert first.measured == ""
    assert second.measured == json.loads(kept_file(cache_of_its_own).read_text())["measured"]
    assert second.noise == first.noise == differential.noise
    assert second.hits > 0
    assert 3 * (after - before) < before


def test_bounds_far_wider_than_the_server_rounds_are_measured_again(servers: tuple[Rig, Differential]) -> None:
    """Whoever wrote them, seal and all: real differences would hide below them."""
    rig, differential = servers
    identity = rig.identity()
    assert identity is not None
    honest = calibrated(differential, rig).noise
    wide = tuple(msgspec.structs.replace(bound, largest=0.9 * CEIL, bands=()) for bound in honest.bounds)
    CalibrationStore().keep(identity, Noise(wide))
    assert CalibrationStore().read(identity, CEIL) is not None
    again = calibrated(differential, rig)
    assert (again.measured, again.noise.largest < 0.1 * CEIL) == ("", True)


def test_what_a_user_sees_of_it(tmp_path: Path) -> None:
    measured_now, kept, anew = (
        stalefuzz("probe", *words, folder=tmp_path).stdout for words in ((), (), ("--recalibrate",))
    )
    assert re.search(r"measured \d{4}-\d\d-\d\d, re-used", kept)
    assert "re-used" not in measured_now + anew


def test_a_server_of_the_users_is_measured_each_time() -> None:
    """What it computes with is not ours to know."""
    assert Rig(ServerOptions(target="http://127.0.0.1:1", engine="llama.cpp")).identity() is None
