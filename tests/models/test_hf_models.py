"""Tiny Hugging Face models: the files that vLLM, SGLang and mlx-lm load."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from fuzzer.errors import UsageError
from fuzzer.models.hf_folders import hf_folders
from fuzzer.models.hf_tiny import AdapterLayout, tiny_folder
from fuzzer.options import ServerOptions


def header(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    found: dict[str, Any] = json.loads(content[8 : 8 + length])
    ends = [entry["data_offsets"][1] for name, entry in found.items() if name != "__metadata__"]
    assert max(ends) == len(content) - 8 - length
    return found


def digests(folder: Path) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()]


@pytest.mark.parametrize("name", ["dense", "swa", "chunked", "granite"])
def test_the_same_bytes_every_time(name: str, tmp_path: Path) -> None:
    for cache in ("one", "two"):
        tiny_folder(name, AdapterLayout.MLX, "mlx-lm", cache=tmp_path / cache)
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_one_code_point_a_token(tmp_path: Path) -> None:
    model = tiny_folder("dense", AdapterLayout.PEFT, "vllm", cache=tmp_path)
    tokenizer = json.loads((model.path / "tokenizer.json").read_text())
    config = json.loads((model.path / "config.json").read_text())
    texts = [text for text, number in tokenizer["model"]["vocab"].items() if number > 2]
    assert all(len(text) == 1 and (text.isprintable() or text == "\n") for text in texts)
    assert len(tokenizer["model"]["vocab"]) == config["vocab_size"]
    assert tokenizer["model"]["merges"] == []
    assert tokenizer["normalizer"] is tokenizer["pre_tokenizer"] is None


def test_other_weights_of_one_architecture(tmp_path: Path) -> None:
    model = tiny_folder("dense", AdapterLayout.PEFT, "vllm", cache=tmp_path)
    first, other = (folder / "model.safetensors" for folder in (model.path, model.other_weights))
    assert header(first) == header(other)
    assert first.read_bytes() != other.read_bytes()
    assert (model.path / "config.json").read_bytes() == (model.other_weights / "config.json").read_bytes()


def test_an_adapter_in_both_layouts(tmp_path: Path) -> None:
    """peft's A is (rank, inputs), mlx-lm's is (inputs, rank)."""
    peft = tiny_folder("dense", AdapterLayout.PEFT, "vllm", cache=tmp_path).adapters[0]
    mlx = tiny_folder("dense", AdapterLayout.MLX, "mlx-lm", cache=tmp_path).adapters[0]
    query = "model.layers.0.self_attn.q_proj"
    theirs = header(peft / "adapter_model.safetensors")[f"base_model.model.{query}.lora_A.weight"]["shape"]
    ours = header(mlx / "adapters.safetensors")[f"{query}.lora_a"]["shape"]
    assert theirs == ours[::-1]
    parameters = json.loads((mlx / "adapter_config.json").read_text())["lora_parameters"]
    settings = json.loads((peft / "adapter_config.json").read_text())
    assert parameters["scale"] == settings["lora_alpha"] / settings["r"]
    assert "self_attn.q_proj" in parameters["keys"]


def test_what_an_engine_cannot_run() -> None:
    with pytest.raises(UsageError, match=r"no tiny model for vllm is called 'chunked'; choose one of dense, swa"):
        tiny_folder("chunked", AdapterLayout.PEFT, "vllm")


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no config\.json"):
        hf_folders(ServerOptions(model=tmp_path), AdapterLayout.PEFT, "vllm")
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(UsageError, match="no JSON object"):
        hf_folders(ServerOptions(model=tmp_path), AdapterLayout.PEFT, "vllm")


def test_an_adapter_of_the_wrong_kind(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"adapter_config\.json"):
        hf_folders(ServerOptions(adapters=(str(tmp_path),)), AdapterLayout.PEFT, "vllm")
