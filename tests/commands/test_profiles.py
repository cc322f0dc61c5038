"""Servers that a user describes in stalefuzz.toml, and the generic adapter on the routes of a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import Ended, llama_server, stalefuzz

from fuzzer.configuration import read_configuration
from fuzzer.errors import UsageError
from fuzzer.servers.launched import LaunchedServer
from fuzzer.servers.profiles import Profile
from fuzzer.servers.registry import engine_called

ROOT = Path(__file__).parents[2]
README = ROOT / ".github/actions/stalefuzz/README.md"
FILE = """
[[profile]]
name = "acme"
route = "{route}"
bypass = {{cache_prompt = false}}
cached = "timings.cache_n"
always = {{ignore_eos = true}}

[[target]]
target = "{url}"
engine = "acme"
adapters = ["none"]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LaunchedServer]:
    with llama_server("-np", "2") as server:
        yield server


def configured(folder: Path, text: str) -> Path:
    path = folder / "stalefuzz.toml"
    path.write_text(text)
    return path


def run(folder: Path, server: LaunchedServer, route: str) -> Ended:
    file = configured(folder, FILE.format(route=route, url=server.url))
    words = ("--config", file, "--scenario", "plain", "--max-steps", "30", "--time", "100s", "--seed", "1")
    return stalefuzz("run", *words, folder=folder)


@pytest.mark.parametrize("route", ["/v1/completions", "/v1/chat/completions"])
def test_a_server_described_in_the_configuration(tmp_path: Path, server: LaunchedServer, route: str) -> None:
    ended = run(tmp_path, server, route)
    assert ended.status == 0, ended.said
    assert ended.record["target"]["engine"] == "acme"
    assert ended.record["target"]["capabilities"]["top_logprobs"] > 0
    assert ended.record["reference"]["mode"] == "bypass"
    assert ended.record["reuse"]["hits"] > 5


def test_a_reference_that_caches_is_none(tmp_path: Path, server: LaunchedServer) -> None:
    """Nothing of its OpenAI route alone says how to skip the cache, so that the reference's has to be off."""
    words = ("--target", server.url, "--engine", "openai", "--scenario", "plain", "--max-steps", "30", "--seed", "1")
    with llama_server("-np", "2") as other:
        cached = stalefuzz("run", *words, "--reference", other.url, folder=tmp_path)
    with llama_server("-np", "2", "--no-cache-prompt", "--cache-ram", "0") as other:
        uncached = stalefuzz("run", *words, "--reference", other.url, folder=tmp_path)
    assert cached.status == 3, cached.said
    assert "the reference reused tokens in" in cached.stdout
    assert uncached.status == 0, uncached.said
    assert uncached.record["reuse"]["hits"] > 5


def test_prompts_fit_the_context_that_the_server_turns_out_to_have(tmp_path: Path) -> None:
    with llama_server("-np", "2", "-c", "1024") as small:
        ended = run(tmp_path, small, "/v1/completions")
    assert ended.status == 0, ended.said
    capabilities = ended.record["target"]["capabilities"]
    assert capabilities["context"] == 512
    assert ended.record["reuse"]["hits"] > 5
    assert not ended.record["reuse"].get("refused")


def test_probe_and_replay_know_it_too(tmp_path: Path, server: LaunchedServer) -> None:
    file = configured(tmp_path, FILE.format(route="/v1/completions", url=server.url))
    words = ("--target", server.url, "--engine", "acme")
    probed = stalefuzz("probe", *words, "--config", file, folder=tmp_path)
    assert probed.status == 0, probed.said
    assert "bypass: acme" in probed.stdout
    unknown = stalefuzz("probe", *words, folder=tmp_path)
    assert unknown.status == 2
    assert "'acme'" in unknown.stderr


def test_the_example_of_the_documentation_is_one(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", README.read_text(), re.DOTALL)
    (example,) = [block for block in blocks if "[[profile]]" in block]
    (profile,) = read_configuration(configured(tmp_path, example)).profile
    assert (profile.name, profile.cached, profile.adapter_field) == ("acme", "timings.cache_n", "adapter")


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("root = 1", "line 4: profile[0].root: there is no such key"),
        ("route = 'v1'", "line 4: profile[0].route: Expected"),
        ("cached = 'a..b'", "line 4: profile[0].cached: Expected"),
        ("always = 3", "line 4: profile[0].always: Expected"),
    ],
)
def test_a_mistake_is_named_with_line_and_key(tmp_path: Path, key: str, named: str) -> None:
    with pytest.raises(UsageError) as mistake:
        read_configuration(configured(tmp_path, f'\n[[profile]]\nname = "acme"\n{key}\n'))
    assert named in str(mistake.value)


@pytest.mark.parametrize("profiles", [("vllm",), ("acme", "acme")])
def test_a_name_is_taken_once(profiles: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="already"):
        engine_called("zoo", [Profile(name=name) for name in profiles])
