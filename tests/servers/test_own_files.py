"""Places of a server's own: only there do other versions appear, and nothing tells of them but its process."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzer.errors import CannotJudge
from fuzzer.options import ServerOptions
from fuzzer.rig import Rig
from fuzzer.servers.llama_engine import LlamaInstallation
from fuzzer.servers.own_files import OwnFiles, put_in_place
from fuzzer.servers.protocol import Put
from scenarios.scenario import FALLS_ASLEEP


@pytest.fixture
def own(tmp_path: Path) -> OwnFiles:
    for name in ("model", "other", "first", "second"):
        (tmp_path / name).write_text(name)
    weights, adapters = (tmp_path / "model", tmp_path / "other"), (tmp_path / "first", tmp_path / "second")
    return OwnFiles(tmp_path / "own", weights, adapters)


def content(own: OwnFiles) -> list[str]:
    return [Path(place).read_text() for place in (own.model, *own.adapters)]


def test_what_is_put_there_is_gone_with_the_next_process(own: OwnFiles, tmp_path: Path) -> None:
    own.lay_out()
    assert content(own) == ["model", "first", "second"]
    for put in (own.weights(1), own.adapter(0, 1), own.adapter(1, 1)):
        put_in_place(put)
    assert content(own) == ["other", "second", "first"]
    own.remove()
    own.lay_out()
    assert content(own) == ["model", "first", "second"]
    assert (tmp_path / "model").read_text() == "model", "the files themselves are left alone"


def test_a_file_in_use_stays_as_it_is(own: OwnFiles) -> None:
    own.lay_out()
    with Path(own.model).open() as opened:
        put_in_place(own.weights(1))
        assert opened.read() == "model"


def test_scripts_call_a_place_by_the_file_that_was_there_first(own: OwnFiles) -> None:
    named = [(own.variables[put.place], own.variables[put.file]) for put in (own.weights(1), own.adapter(1, 1))]
    assert named == [("MODEL", "OTHER_WEIGHTS"), ("ADAPTER_2", "ADAPTER_1")]


def test_a_disk_that_takes_no_file_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotJudge, match=r"no other file could be put in the place of .*gone/model: No such file"):
        put_in_place(Put(str(tmp_path / "gone" / "model"), "other"))


def test_a_server_that_never_sleeps_reads_the_files_where_they_are() -> None:
    installation = LlamaInstallation(ServerOptions(), True)
    assert installation.target().launch.own is None
    assert installation.reference().launch.own is None
    assert installation.further(()) == ()
    installation.close()


def test_only_the_process_knows_its_places() -> None:
    """Commands, settings and what a calibration is kept under are those of any server with the same flags."""
    rig = Rig(ServerOptions())
    installation = LlamaInstallation(ServerOptions(), True)
    one, other = installation.target(setting=FALLS_ASLEEP), installation.target(setting=FALLS_ASLEEP)
    assert one.launch.own is not None
    assert other.launch.own is not None
    assert one.command == other.command
    places = [str(own.model) for own in (one.launch.own, other.launch.own)]
    assert [places[0] in server.launch.child_argv(1) for server in (one, other)] == [True, False]
    assert "stalefuzz-" not in " ".join(installation.settings(FALLS_ASLEEP).flags)
    with one:
        assert Path(places[0]).exists()
        assert not Path(places[1]).exists()
    assert not Path(places[0]).parents[1].exists()
    installation.close()
    rig.stop()


@pytest.mark.parametrize(
    ("adapters", "kinds"),
    [
        (None, ("sleep", "reload_weights", "reload")),
        ((), ("sleep", "reload_weights")),
    ],
)
def test_what_a_tiny_model_can_be_told_to_load(adapters: tuple[str, ...] | None, kinds: tuple[str, ...]) -> None:
    installation = LlamaInstallation(ServerOptions(adapters=adapters), True)
    assert installation.further(FALLS_ASLEEP) == kinds
    installation.close()


def test_a_model_of_the_users_has_one_version(model: list[str]) -> None:
    installation = LlamaInstallation(ServerOptions(model=Path(model[1])), False)
    assert installation.further(FALLS_ASLEEP) == ("sleep",)
    assert installation.reference_of is None
    assert installation.target(setting=FALLS_ASLEEP).launch.own is None
    installation.close()
