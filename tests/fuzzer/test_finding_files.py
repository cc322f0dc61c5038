"""Finding files are untrusted: whatever is in one, reading it ends in a finding or in one sentence."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import ask, path

from fuzzer.errors import UsageError
from fuzzer.finding_file import options_for, read_finding
from fuzzer.options import ServerOptions
from oracles.evidence import Arm, Repeats
from reports.record import FindingRecord, Settings

FINDING = FindingRecord(
    id="ab12",
    title="adapter scale of a reused prefix",
    kind="key-omits-input",
    oracle="logprobs",
    scenario="adapter-scale",
    plan=(ask(path(0, ("a", 2)), 0.0), ask(path(0, ("a", 2)), 1.0)),
    operations=2,
    wrong=2,
    story=["complete P a=0", "complete P a=1"],
    explanation=[],
    steps=[],
    divergence=None,
    settings=Settings("llama.cpp", "b1", ["--cache-ram", "64"], "tiny:dense:seed=0:format=1", [], "exact"),
    reproduced=Repeats(5, 5),
    alone=Arm(True),
    control=Arm(True),
    bypass=None,
    reuse_witnessed=True,
    max_abs_logprob_delta=3.0,
    bound=1e-4,
    necessary=[],
    stale_source=None,
    mitigations=[],
    minimal=True,
    original=(),
    found_s=1.0,
    seed=0,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("findings")


def tree() -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(msgspec.json.encode(FINDING))
    return plain


def written(folder: Path, content: bytes | str | dict[str, Any]) -> Path:
    file = folder / "finding.json"
    text = json.dumps(content) if isinstance(content, dict) else content
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def refused(file: Path) -> str:
    with pytest.raises(UsageError) as error:
        read_finding(file)
    assert str(file) in str(error.value)
    return str(error.value)


def test_a_finding_survives_its_file(folder: Path) -> None:
    assert read_finding(written(folder, msgspec.json.encode(FINDING))) == FINDING


def test_fields_of_later_versions_are_ignored(folder: Path) -> None:
    assert read_finding(written(folder, {**tree(), "colour": "red"})) == FINDING


def test_another_format_is_named_and_not_read(folder: Path) -> None:
    assert "format 2; this stalefuzz reads format 1" in refused(written(folder, {**tree(), "schema": 2, "plan": 7}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=60))
def test_bytes(folder: Path, content: bytes) -> None:
    refused(written(folder, content))


@given(json_values)
def test_json_of_anything(folder: Path, value: Any) -> None:
    refused(written(folder, json.dumps(value)))


@given(st.sampled_from(sorted(tree())), json_values)
def test_one_field_of_anything(folder: Path, field: str, value: Any) -> None:
    """It is read where the value happens to be of the field's kind, and refused in a sentence otherwise."""
    file = written(folder, {**tree(), field: value})
    with suppress(UsageError):
        finding = read_finding(file)
        assert 1 <= finding.wrong <= len(finding.plan)


def changed_operation(**fields: Any) -> dict[str, Any]:
    finding = tree()
    finding["plan"][0] |= fields
    return finding


HOSTILE = {
    "path-id": {"id": "../../etc/passwd"},
    "upper-id": {"id": "AB"},
    "empty-id": {"id": ""},
    "newline-id": {"id": "ab\n"},
    "no-steps": {"plan": []},
    "wrong-step-0": {"wrong": 0},
    "wrong-step-3": {"wrong": 3},
    "unknown-operation": {"plan": [{"op": "shell", "command": "rm"}] * 2},
    "negative-root": changed_operation(prompt={"root": -1, "segments": []}),
    "far-root": changed_operation(prompt={"root": 10**9, "segments": []}),
    "huge-segment": changed_operation(prompt={"root": 0, "segments": [["a", 10**9]]}),
    "negative-segment": changed_operation(prompt={"root": 0, "segments": [["a", -5]]}),
    "many-segments": changed_operation(prompt={"root": 0, "segments": [["a", 4000]] * 5000}),
    "negative-tokens": changed_operation(tokens=-1),
    "no-tokens": changed_operation(tokens=0),
    "huge-tokens": changed_operation(tokens=10**12),
    "negative-adapter": changed_operation(scales=[[-1, 1.0]]),
    "far-adapter": changed_operation(scales=[[10**9, 1.0]]),
    "dangling-growth": changed_operation(prompt={"root": 0, "segments": [], "after": 7}),
    "growth-from-itself": changed_operation(prompt={"root": 0, "segments": [], "after": 0}),
    "dangling-join": {"plan": [{"op": "join", "of": 5}, *tree()["plan"]]},
    "negative-join": {"plan": [*tree()["plan"], {"op": "join", "of": -1}]},
    "join-of-no-start": {"plan": [*tree()["plan"], {"op": "abort", "of": 0}]},
    "huge-eviction": {"plan": [{"op": "evict", "requests": 10**9, "length": 10**9}, *tree()["plan"]]},
    "request-before-the-plan": {"prologue": tree()["plan"]},
    "huge-number-before-the-plan": {"prologue": [{"op": "reload", "adapter": 0, "version": 10**9}]},
    "growth-from-no-request": {"plan": [{"op": "flush"}, changed_operation(prompt={"root": 0, "after": 0})["plan"][0]]},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_values(folder: Path, change: dict[str, Any]) -> None:
    refused(written(folder, {**tree(), **change}))


@pytest.mark.parametrize("scale", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_scales_are_numbers(folder: Path, scale: str) -> None:
    text = json.dumps(changed_operation(scales=[[0, 12345.5]])).replace("12345.5", scale)
    refused(written(folder, text))


def test_a_folder_a_missing_file_and_a_huge_one_are_refused(folder: Path) -> None:
    refused(folder)
    refused(folder / "missing.json")
    huge = folder / "huge.json"
    with huge.open("wb") as file:
        file.truncate(1 << 40)
    assert "larger than any finding file" in refused(huge)


def options(flags: list[str], asked: ServerOptions | None = None, model: str | None = None) -> ServerOptions:
    settings = msgspec.structs.replace(FINDING.settings, flags=flags, model=model or FINDING.settings.model)
    return options_for(msgspec.structs.replace(FINDING, settings=settings), asked or ServerOptions())


def test_its_settings_are_used_and_those_of_the_user_come_first() -> None:
    assert options(["--cache-ram", "32"]).server_flags == ("--cache-ram", "32")
    asked = ServerOptions(server_flags=("-cram", "0"))
    assert options(["--cache-ram", "32"], asked).server_flags == ("--cache-ram", "0")
    assert options([]).tiny == "dense"


def test_a_finding_made_without_adapters_is_replayed_without() -> None:
    """Loaded ones would decide the answer to a request that names none."""
    bare = msgspec.structs.replace(FINDING, settings=msgspec.structs.replace(FINDING.settings, adapters=[]))
    assert options_for(bare, ServerOptions()).adapters == ()
    assert options_for(bare, ServerOptions(adapters=("a.gguf",))).adapters == ("a.gguf",)
    two = msgspec.structs.replace(FINDING, settings=msgspec.structs.replace(FINDING.settings, adapters=["one", "two"]))
    assert options_for(two, ServerOptions()).adapters is None


@pytest.mark.parametrize(
    "flags",
    [
        ["--model", "/etc/passwd"],
        ["--lora", "/etc/passwd"],
        ["--slot-save-path", "/"],
        ["--port", "1"],
        ["--log-file", "/tmp/x"],
        ["--rpc", "evil:1"],
        ["; rm -rf /"],
    ],
    ids=" ".join,
)
def test_no_path_address_or_unknown_flag_is_taken_from_a_file(flags: list[str]) -> None:
    assert not set(options([*flags, "--cache-ram", "32"]).server_flags) & set(flags)


def test_a_bad_flag_in_a_file_is_a_sentence() -> None:
    with pytest.raises(UsageError, match="--cache-ram"):
        options(["--cache-ram", "much"])
    with pytest.raises(UsageError):
        options(["--host", "0.0.0.0"])


def test_a_model_of_somebody_elses_is_asked_for() -> None:
    with pytest.raises(UsageError, match="--model"):
        options([], model="sha256:00")
    with pytest.raises(UsageError, match="--model"):
        options([], model="/etc/passwd")
