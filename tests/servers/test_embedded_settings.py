"""Each flag reaches the embedded llama-server: as a field of its settings, and as something that it then does."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import xllamacpp
from asking import complete, get, post, reused

from fuzzer.errors import UsageError
from fuzzer.servers import embedded
from fuzzer.servers.launched import launch_embedded
from fuzzer.servers.llama_flags import parse_flags


def field(name: str) -> Callable[[Any], Any]:
    def read(params: Any) -> Any:
        for part in name.split("."):
            params = getattr(params, part)
        return params

    return read


@pytest.mark.parametrize(
    ("argv", "name", "value"),
    [
        ("-m some.gguf", "model.path", "some.gguf"),
        ("-a tiny", "model_alias", {"tiny"}),
        ("--host localhost", "hostnames", ["127.0.0.1"]),
        ("--port 1234", "port", 1234),
        ("", "port", 0),
        ("--threads-http 3", "n_threads_http", 3),
        ("-lv 1", "verbosity", 1),
        ("-np 3", "n_parallel", 3),
        ("", "n_parallel", -1),
        ("-c 384", "n_ctx", 384),
        ("-b 64", "n_batch", 64),
        ("-ub 32", "n_ubatch", 32),
        ("-nocb", "cont_batching", False),
        ("-t 3", "cpuparams.n_threads", 3),
        ("-t 3", "cpuparams_batch.n_threads", 3),
        ("-t 3 -tb 2", "cpuparams_batch.n_threads", 2),
        ("-t 0", "cpuparams.n_threads", os.cpu_count()),
        ("-ngl 0", "n_gpu_layers", 0),
        ("-ngl all", "n_gpu_layers", -2),
        ("--no-warmup", "warmup", False),
        ("-fa on", "flash_attn_type", xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED),
        ("-fa off", "flash_attn_type", xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED),
        ("", "flash_attn_type", xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_AUTO),
        ("-ctk f32", "cache_type_k", xllamacpp.ggml_type.GGML_TYPE_F32),
        ("-ctv q8_0", "cache_type_v", xllamacpp.ggml_type.GGML_TYPE_Q8_0),
        ("-ctv iq4_nl", "cache_type_v", xllamacpp.ggml_type.GGML_TYPE_IQ4_NL),
        ("", "cache_type_k", xllamacpp.ggml_type.GGML_TYPE_F16),
        ("--no-cache-prompt", "cache_prompt", False),
        ("--cache-reuse 8", "n_cache_reuse", 8),
        ("-cram 64", "cache_ram_mib", 64),
        ("--no-cache-idle-slots", "cache_idle_slots", False),
        ("--swa-checkpoints 4", "n_ctx_checkpoints", 4),
        ("-cms 16", "checkpoint_min_step", 16),
        ("-kvu", "kv_unified", True),
        ("--swa-full", "swa_full", True),
        ("--context-shift", "ctx_shift", True),
        ("--slot-save-path some/folder", "slot_save_path", "some/folder/"),
        ("-sps 0.5", "slot_prompt_similarity", 0.5),
        ("--sleep-idle-seconds 7", "sleep_idle_seconds", 7),
        ("--lora-init-without-apply", "lora_init_without_apply", True),
        ("--no-slots", "endpoint_slots", False),
        ("--metrics", "endpoint_metrics", True),
        ("--props", "endpoint_props", True),
        ("--embeddings", "embedding", True),
        ("--predict 5", "n_predict", 5),
        ("--keep 4", "n_keep", 4),
        ("-s 42", "sampling.seed", 42),
        ("-s -1", "sampling.seed", 2**32 - 1),
    ],
)
def test_a_flag_sets_its_field(argv: str, name: str, value: Any) -> None:
    assert field(name)(embedded.common_params(parse_flags(argv.split()))) == value


def test_adapters_are_loaded_in_order_with_their_scales() -> None:
    params = embedded.common_params(parse_flags(["--lora", "a", "--lora-scaled", "b:0.5"]))
    assert [(adapter.path, adapter.scale) for adapter in params.lora_adapters] == [("a", 1.0), ("b", 0.5)]


def test_a_flag_that_an_older_wheel_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class OlderParams:
        port = n_parallel = 0
        hostname = ""

    monkeypatch.setattr(xllamacpp, "CommonParams", OlderParams)
    assert embedded.common_params(parse_flags([])).hostname == "127.0.0.1"
    with pytest.raises(UsageError, match="does not know --checkpoint-min-step"):
        embedded.common_params(parse_flags(["-cms", "16"]))


def test_slots_context_and_endpoints(model: list[str]) -> None:
    with launch_embedded([*model, "-np", "3", "-c", "768", "--metrics"]) as server:
        assert get(server, "/props")["total_slots"] == 3
        assert [slot["n_ctx"] for slot in get(server, "/slots")] == [256, 256, 256]
        assert httpx.get(server.url + "/metrics").status_code == 200


def test_without_a_slot_count_it_does_as_the_executable_does(model: list[str]) -> None:
    with launch_embedded([*model, "--no-slots"]) as server:
        assert get(server, "/props")["total_slots"] == 4
        assert httpx.get(server.url + "/slots").status_code == 501
        assert httpx.get(server.url + "/metrics").status_code == 501


def test_numerics_batches_and_threads(model: list[str]) -> None:
    flags = ["-np", "1", "-fa", "off", "-ctk", "f32", "-ctv", "f32", "-b", "64", "-ub", "32", "-lv", "5"]
    with launch_embedded([*model, *flags]) as server:
        log = server.log_tail(1000)
    assert "flash_attn            = disabled" in log
    assert "K (f32):" in log
    assert "V (f32):" in log
    assert "n_batch               = 64" in log
    assert "n_ubatch              = 32" in log
    assert "n_threads = 1" in log


def test_default_numerics_are_the_engines_own(model: list[str]) -> None:
    with launch_embedded([*model, "-np", "1", "-lv", "5"]) as server:
        log = server.log_tail(1000)
    assert "flash_attn            = auto" in log
    assert "K (f16):" in log


def test_a_prompt_is_reused_unless_no_cache_prompt(model: list[str]) -> None:
    with launch_embedded([*model, "-np", "1"]) as server:
        assert [reused(complete(server, 40)) for _ in range(2)] == [0, 23]
    with launch_embedded([*model, "-np", "1", "--no-cache-prompt"]) as server:
        assert [reused(complete(server, 40)) for _ in range(2)] == [0, 0]


def test_an_evicted_prompt_comes_back_unless_cache_ram_is_0(model: list[str]) -> None:
    def evict_and_return(cache_ram: str) -> int:
        with launch_embedded([*model, "-np", "1", "--cache-ram", cache_ram]) as server:
            return [reused(complete(server, first)) for first in (40, 80, 40)][-1]

    assert evict_and_return("64") == 23
    assert evict_and_return("0") == 0


def test_adapters_get_their_scales(model: list[str], files: Path) -> None:
    adapters = ["--lora", str(files / "first.gguf"), "--lora-scaled", f"{files / 'second.gguf'}:0.5"]
    with launch_embedded([*model, *adapters]) as server:
        assert [adapter["scale"] for adapter in get(server, "/lora-adapters")] == [1.0, 0.5]


def test_an_adapter_changes_the_answer(model: list[str], files: Path) -> None:
    with launch_embedded([*model, "--lora", str(files / "first.gguf")]) as server:
        answers = [
            complete(server, 40, n_probs=3, lora=[{"id": 0, "scale": scale}])["completion_probabilities"][0]["logprob"]
            for scale in (0.0, 1.0)
        ]
    assert abs(answers[0] - answers[1]) > 0.01


def test_slots_are_saved_into_the_folder(model: list[str], tmp_path: Path) -> None:
    with launch_embedded([*model, "-np", "1", "--slot-save-path", str(tmp_path)]) as server:
        complete(server, 40)
        post(server, "/slots/0?action=save", {"filename": "kept.bin"})
    assert [path.name for path in tmp_path.iterdir()] == ["kept.bin"]
