"""The real vLLM server on a CPU: a public bug of adapter reloads, and a plain model on which it is sound."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from installed import vllm, vllm_with_the_reload_bug
from launched_engine import sleeps_and_loads_other_weights
from running import stalefuzz
from shared_target import SharedTarget, completes, folders, reloads

from fuzzer.models.hf_folders import hf_folders
from fuzzer.models.hf_tiny import AdapterLayout
from fuzzer.options import ServerOptions
from fuzzer.servers.protocol import Request
from fuzzer.servers.vllm_engine import VllmInstallation
from fuzzer.servers.vllm_server import VllmServer, VllmSetup
from scenarios.operations import Flush, ReloadWeights, Sleep

pytestmark = pytest.mark.vllm
TIME = ("--time", "1800s")
PATIENCE_S = 2400.0
TROPHIES = Path(__file__).parents[2] / ".github" / "trophies"
SERIAL = ("--scenario", "adapter-scale", "--scenario", "conversation")
"""One request after another: beside one that names an adapter, vLLM answers for the model itself with the last adapter
on a CPU (vllm#48421)."""
PROFILE = """
[[profile]]
name = "vllm-by-profile"
always = {ignore_eos = true}
bypass = {cache_salt = "{fresh}"}
salt = "cache_salt"
adapter-models = true
"""


@pytest.fixture(scope="module")
def installation() -> Iterator[VllmInstallation]:
    """vLLM as somebody starts it, with a tiny model and its two adapters."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in vllm().items():
            patch.setenv(name, value)
        yield VllmInstallation(ServerOptions(launch="vllm"), True)


@pytest.fixture(scope="module")
def vllm_url(installation: VllmInstallation) -> Iterator[str]:
    """A vLLM server of somebody's."""
    with installation.target() as process:
        yield process.url


@pytest.fixture(scope="module")
def uncached_url(installation: VllmInstallation) -> Iterator[str]:
    """The same without prefix caching."""
    with installation.target(installation.no_cache) as process:
        yield process.url


def test_a_reloaded_adapter_answers_with_the_blocks_of_the_old_one(tmp_path: Path) -> None:
    """vllm#42125: cached blocks are keyed by the adapter's name, and the name outlives the weights."""
    words = ("--launch", "vllm", "--scenario", "adapter-reload", "--seed", "1", *TIME)
    run = stalefuzz("run", "-x", *words, folder=tmp_path, patience_s=PATIENCE_S, env=vllm_with_the_reload_bug())
    assert run.status == 1, run.said
    (finding,) = run.record["findings"]
    assert [operation["op"] for operation in finding["plan"]] == ["complete", "reload", "complete"]
    assert finding["reproduced"] == {"k": 5, "n": 5}
    assert finding["reuse_witnessed"]
    assert finding["max_abs_logprob_delta"] > 1
    assert {"setting": "a fresh cache_salt", "clean": True} in finding["mitigations"]


def test_one_server_shows_the_reload_too(tmp_path: Path) -> None:
    """vllm#42125 where there is no second server: the bypass computes under the weights that were loaded last."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in vllm_with_the_reload_bug().items():
            patch.setenv(name, value)
        installation = VllmInstallation(ServerOptions(launch="vllm"), True)
    with installation.target() as process, httpx.Client(base_url=process.url) as client:
        before = folders(client)
        words = ("--target", process.url, "--engine", "vllm", "--allow-admin", "--scenario", "adapter-reload")
        run = stalefuzz("run", "-x", *words, "--seed", "1", *TIME, folder=tmp_path, patience_s=PATIENCE_S)
        after = folders(client)
    assert run.status == 1, run.said
    assert run.record["reference"]["mode"] == "bypass"
    (finding,) = run.record["findings"]
    assert [operation["op"] for operation in finding["plan"]] == ["complete", "reload", "complete"]
    assert finding["reproduced"] == {"k": 5, "n": 5}
    assert finding["id"] == json.loads((TROPHIES / "vllm-42125.json").read_text())["id"]
    assert run.record["others"]["changes"] == {}
    assert after == before
    assert len(after) == 2


def test_a_plain_model_without_adapters_is_clean(tmp_path: Path) -> None:
    words = ("--launch", "vllm", "--adapter", "none", "--scenario", "plain", "--max-steps", "150", "--seed", "1", *TIME)
    run = stalefuzz("run", *words, folder=tmp_path, patience_s=PATIENCE_S, env=vllm())
    assert run.status == 0, run.said
    assert run.record["reuse"]["hits"] > 10
    assert run.record["target"]["capabilities"]["block"] == 32


def test_a_hybrid_is_clean(tmp_path: Path) -> None:
    """State-space layers beside attention: what is reused are states, kept at the ends of blocks."""
    words = ("--launch", "vllm", "--tiny", "granite", "--adapter", "none", "--scenario", "plain", "--max-steps", "60")
    run = stalefuzz("run", *words, "--seed", "1", *TIME, folder=tmp_path, patience_s=PATIENCE_S, env=vllm())
    assert run.status == 0, run.said
    assert run.record["reuse"]["hits"] > 3
    assert run.record["target"]["capabilities"]["recurrent"]


def test_sleeps_and_other_weights_between_requests_are_clean(tmp_path: Path) -> None:
    sleeps_and_loads_other_weights("vllm", vllm(), tmp_path, PATIENCE_S)


@pytest.mark.parametrize("adapters", [(), ("--adapter", "a", "--adapter", "b")])
def test_a_profile_is_enough_for_it(vllm_url: str, tmp_path: Path, adapters: tuple[str, ...]) -> None:
    """Its OpenAI route and one field: hits are witnessed there, and answers under a fresh salt are the same."""
    (tmp_path / "stalefuzz.toml").write_text(PROFILE)
    words = ("--config", "stalefuzz.toml", "--target", vllm_url, "--engine", "vllm-by-profile", *adapters)
    steps = ("--max-steps", "150", *(SERIAL if adapters else ()))
    run = stalefuzz("run", *words, *steps, "--seed", "1", *TIME, folder=tmp_path, patience_s=PATIENCE_S)
    assert run.status == 0, run.said
    assert run.record["reference"]["mode"] == "bypass"
    assert run.record["reuse"]["hits"] > 10
    capabilities = run.record["target"]["capabilities"]
    assert (capabilities["block"], capabilities["top_logprobs"]) == (32, 20)
    assert capabilities["adapters"] == len(adapters) // 2


@pytest.mark.parametrize("adapters", [(), ("--adapter", "a", "--adapter", "b")])
def test_as_a_server_of_which_nothing_is_known_but_its_route(
    vllm_url: str, uncached_url: str, tmp_path: Path, adapters: tuple[str, ...]
) -> None:
    """Nothing says how it could skip its cache, so that it needs a reference; what it cached it tells itself."""
    words = ("run", "--target", vllm_url, "--engine", "openai", *adapters)
    alone = stalefuzz(*words, folder=tmp_path, patience_s=PATIENCE_S)
    assert alone.status == 2
    assert "give it with --reference URL" in alone.stderr
    steps = ("--max-steps", "150", *(SERIAL if adapters else ()))
    paired = (*words, "--reference", uncached_url, *steps, "--seed", "1", *TIME)
    run = stalefuzz(*paired, folder=tmp_path, patience_s=PATIENCE_S)
    assert run.status == 0, run.said
    assert run.record["reference"]["mode"] == "url"
    assert run.record["reuse"]["hits"] > 10
    capabilities = run.record["target"]["capabilities"]
    assert (capabilities["block"], capabilities["top_logprobs"]) == (32, 20)
    assert capabilities["adapters"] == len(adapters) // 2


def test_requests_of_others_are_counted(vllm_url: str, tmp_path: Path) -> None:
    SharedTarget(vllm_url, "vllm", TIME[1], PATIENCE_S).counts_requests_of_others(completes, tmp_path)


def test_adapters_that_others_reload_are_no_bug_of_the_server(vllm_url: str, tmp_path: Path) -> None:
    with httpx.Client(base_url=vllm_url) as client:
        paths = list(folders(client).values())
    shared = SharedTarget(vllm_url, "vllm", TIME[1], PATIENCE_S)
    shared.blames_nothing_on_reloads(lambda client, number: reloads(client, paths[number % 2]), tmp_path)


def test_findings_of_llama_server_are_replayed(tmp_path: Path) -> None:
    """One plan, two engines; what sets global scales needs what vLLM has not."""
    files = [TROPHIES / f"llama.cpp-{name}.json" for name in ("30129", "26207")]
    replayed = stalefuzz("replay", *files, "--launch", "vllm", folder=tmp_path, patience_s=PATIENCE_S, env=vllm())
    fixed, error = replayed.stdout.splitlines()
    assert fixed.startswith("FIXED"), replayed.said
    assert "lawful reuse of" in fixed
    assert error.startswith("ERROR"), replayed.said
    assert "needs what this server cannot do: set_scales" in error


def test_a_finding_of_llama_server_shows_here_too(tmp_path: Path) -> None:
    """The same bug in both: a tier below the cache, llama-server's in RAM or vLLM's on disk, keyed by tokens alone.

    On vLLM it is vllm#53495: ExampleConnector's entries are found whatever adapter or tenant asks.
    """
    where = {"shared_storage_path": str(tmp_path / "tier")}
    tier = {"kv_connector": "ExampleConnector", "kv_role": "kv_both", "kv_connector_extra_config": where}
    words = ("--launch", "vllm", "--", "--kv-transfer-config", json.dumps(tier))
    file = TROPHIES / "llama.cpp-30129.json"
    replayed = stalefuzz("replay", file, *words, folder=tmp_path, patience_s=PATIENCE_S, env=vllm())
    assert replayed.status == 1, replayed.said
    assert replayed.stdout.startswith("REPRODUCED"), replayed.said


@pytest.fixture
def server(vllm_url: str) -> Iterator[VllmServer]:
    """The same server to somebody who may do anything with it."""
    folders = hf_folders(ServerOptions(), AdapterLayout.PEFT, "vllm")
    weights = tuple(str(path) for path in folders.weights)
    setup = VllmSetup(vocabulary=folders.vocabulary, weights=weights, forgets=True, admin=True, sleeps=True)
    server = VllmServer(vllm_url, setup)
    server.perform(Flush())
    yield server
    server.close()


ASKED = Request(tuple(range(10, 90)), 2)


def test_a_server_that_slept_has_forgotten_every_block(server: VllmServer) -> None:
    cold, hit = server.complete(ASKED), server.complete(ASKED)
    server.perform(Sleep())
    woken, again = server.complete(ASKED), server.complete(ASKED)
    assert [answer.reused for answer in (cold, hit, woken, again)] == [0, 64, 0, 64]
    assert woken.positions == cold.positions


def test_other_weights_answer_otherwise_and_reuse_nothing(server: VllmServer) -> None:
    first = server.complete(ASKED)
    server.perform(ReloadWeights(1))
    other, hit = server.complete(ASKED), server.complete(ASKED)
    server.perform(ReloadWeights(0))
    back = server.complete(ASKED)
    assert [answer.reused for answer in (first, other, hit, back)] == [0, 0, 64, 0]
    assert first.positions == back.positions
    assert other.positions == hit.positions
    assert other.tokens != first.tokens
