"""llama-server command lines: every spelling is read, what cannot work is named, ours and the user's are merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzer.errors import UsageError
from fuzzer.servers.llama_flag_table import FLAGS, LORA, LORA_SCALED, Choice, Flag, Integer, Number
from fuzzer.servers.llama_flags import LoraFile, missing_files, parse_flags

SETTINGS = [flag for flag in FLAGS if flag.name not in (LORA, LORA_SCALED)]
WITH_VALUE = [flag for flag in SETTINGS if flag.kind is not None]
SWITCHES = [flag for flag in SETTINGS if flag.kind is None]


def sample(flag: Flag) -> str:
    match flag.kind:
        case Integer():
            return "3"
        case Number():
            return "0.25"
        case Choice():
            return flag.kind.words[0]
    return "localhost" if flag.name == "--host" else "a-text"


@pytest.mark.parametrize("flag", WITH_VALUE, ids=lambda flag: flag.name)
def test_a_flag_means_the_same_in_each_of_its_spellings(flag: Flag) -> None:
    text = sample(flag)
    long_spelling = parse_flags([flag.name, text])
    assert list(long_spelling.settings) == [flag.name]
    assert parse_flags([f"{flag.name}={text}"]) == long_spelling
    for spelling in flag.aliases:
        assert parse_flags([spelling, text]) == long_spelling


@pytest.mark.parametrize("flag", SWITCHES, ids=lambda flag: flag.name)
def test_a_switch_is_on_by_its_name_and_off_by_its_no_form(flag: Flag) -> None:
    for spelling in (flag.name, *flag.aliases):
        assert parse_flags([spelling]).settings == {flag.name: True}
    for spelling in flag.off:
        assert parse_flags([spelling]).settings == {flag.name: False}


def test_values_are_read_as_llama_server_reads_them() -> None:
    flags = parse_flags(
        ["-np", "2", "-sps", "0.5", "-fa", "0", "-ngl", "all", "--cache-ram=-1", "-n", "-1", "-s", "-1"]
    )
    assert flags.settings == {
        "--parallel": 2,
        "--slot-prompt-similarity": 0.5,
        "--flash-attn": "off",
        "--n-gpu-layers": -2,
        "--cache-ram": -1,
        "--n-predict": -1,
        "--seed": -1,
    }


def test_the_last_of_a_flag_given_twice_wins_in_whatever_spelling() -> None:
    assert parse_flags(["-c", "64", "--ctx-size", "128"]).get("--ctx-size") == 128
    assert parse_flags(["-kvu", "-no-kvu"]).get("--kv-unified") is False


def test_adapters_add_up_in_the_order_that_gives_them_their_ids() -> None:
    flags = parse_flags(["--lora", "a,b", "--lora-scaled", "c:0.5,d:-2", "--lora", '"with,comma"'])
    assert flags.adapters == (
        LoraFile("a"),
        LoraFile("b"),
        LoraFile("c", 0.5),
        LoraFile("d", -2.0),
        LoraFile("with,comma"),
    )
    assert parse_flags(flags.argv()) == flags


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--cache-rom", "0"], "no flag --cache-rom that stalefuzz knows. Did you mean --cache-ram?"),
        (["--frobnicate"], "no flag --frobnicate that stalefuzz knows. With --binary PATH"),
        (["-np=2"], "no flag -np=2"),
        (["-np", "2", "3"], "takes no argument '3'"),
        (["-np"], "-np needs an integer"),
        (["-c", "-np", "2"], "-c needs an integer"),
        (["-np", "two"], "-np takes an integer from -1 but not 0, not 'two'"),
        (["-np", "0"], "not '0'"),
        (["-b", "0"], "-b takes an integer from 1, not '0'"),
        (["-c", "99999999999"], "not '99999999999'"),
        (["--port", "65536"], "--port takes an integer from 0 to 65535, not '65536'"),
        (["-ngl", "some"], "-ngl takes an integer from -2, or auto, or all, not 'some'"),
        (["-sps", "nan"], "-sps takes a number, not 'nan'"),
        (["-ctk", "f64"], "-ctk takes one of f32, f16"),
        (["-fa", "maybe"], "-fa takes one of on, off, auto, not 'maybe'"),
        (["--model", ""], "--model takes a value, not ''"),
        (["--swa-full=yes"], "--swa-full takes no value"),
        (["--lora", ""], "--lora '' names no file"),
        (["--lora", "a,"], "--lora 'a,' names no file"),
        (["--lora-scaled", "a"], "takes FILE:SCALE with no other colon in it, not 'a'"),
        (["--lora-scaled", "a:b:1"], "not 'a:b:1'"),
        (["--lora-scaled", "a:inf"], "not 'a:inf'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_work_is_named_in_a_sentence(argv: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_flags(argv)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "127.0.0.1,0.0.0.0", "/tmp/llama.sock"])
@pytest.mark.parametrize("keep_unknown", [False, True])
def test_a_host_beyond_loopback_is_refused(host: str, keep_unknown: bool) -> None:
    with pytest.raises(UsageError, match=r"listens on 127\.0\.0\.1 only"):
        parse_flags(["--host", host], keep_unknown=keep_unknown)


def test_the_users_flags_win_over_ours_whatever_the_spelling() -> None:
    ours = parse_flags(["--cache-ram", "64", "-fa", "off", "--no-kv-unified", "--lora", "tiny.gguf", "-t", "1"])
    merged = parse_flags(["-cram", "0", "-kvu", "--lora-scaled", "mine.gguf:0.5"]).with_defaults(ours)
    assert merged.settings == {"--cache-ram": 0, "--flash-attn": "off", "--kv-unified": True, "--threads": 1}
    assert merged.adapters == (LoraFile("mine.gguf", 0.5),)
    assert parse_flags(merged.argv()) == merged


def test_our_adapters_stay_when_the_user_names_none() -> None:
    ours = parse_flags(["--lora", "tiny.gguf"])
    assert parse_flags(["-np", "2"]).with_defaults(ours).adapters == (LoraFile("tiny.gguf"),)


def test_unknown_flags_of_an_executable_are_kept_word_for_word() -> None:
    argv = ["--override-kv", "a=int:3", "-np", "2", "-hf", "x/y", "--threads-foo=-1", "--lora", "a"]
    flags = parse_flags(argv, keep_unknown=True)
    assert flags.unknown == ("--override-kv", "a=int:3", "-hf", "x/y", "--threads-foo=-1")
    assert flags.argv() == ("--parallel", "2", "--lora", "a", *flags.unknown)


def test_files_that_are_named_but_not_there_are_listed(files: Path) -> None:
    model = files / "model.gguf"
    flags = parse_flags(["-m", str(model), "--lora", f"{files / 'first.gguf'},{files / 'gone.gguf'}"])
    assert list(missing_files(flags)) == [files / "gone.gguf"]
