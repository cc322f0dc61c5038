"""Writes a Hugging Face blueprint as the folder that vLLM, SGLang and mlx-lm load, and adapters for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fuzzer.models.blueprint import Tensor, linear
from fuzzer.models.hf_blueprint import HFBlueprint
from fuzzer.models.hf_vocabulary import END, tokenizer_config_json, tokenizer_json
from fuzzer.models.lora import ALPHA, B_DEVIATION, RANK
from fuzzer.models.safetensors_file import write_safetensors
from fuzzer.models.weights import draw

Weights = npt.NDArray[np.float32]

MODEL_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
PEFT_FILES = ("adapter_config.json", "adapter_model.safetensors")
MLX_FILES = ("adapter_config.json", "adapters.safetensors")


def write_model_folder(folder: Path, blueprint: HFBlueprint, seed: int) -> None:
    """Write config, weights and tokenizer."""
    write_safetensors(folder / "model.safetensors", {tensor.name: _drawn(tensor, seed) for tensor in blueprint.tensors})
    _write_json(folder / "config.json", blueprint.config)
    _write_json(folder / "tokenizer.json", tokenizer_json())
    _write_json(folder / "tokenizer_config.json", tokenizer_config_json())


def write_peft_adapter(folder: Path, blueprint: HFBlueprint, seed: int, number: int) -> None:
    """Write adapter ``number`` as the peft library lays it out."""
    tensors: dict[str, Weights] = {}
    for name, a, b in _factors(blueprint, seed, number):
        tensors[f"base_model.model.{name}.lora_A.weight"] = a
        tensors[f"base_model.model.{name}.lora_B.weight"] = b
    write_safetensors(folder / "adapter_model.safetensors", tensors)
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "",
        "r": RANK,
        "lora_alpha": ALPHA,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted({name.rpartition(".")[2] for name, _, _ in _factors(blueprint, seed, number)}),
    }
    _write_json(folder / "adapter_config.json", config)


def write_mlx_adapter(folder: Path, blueprint: HFBlueprint, seed: int, number: int) -> None:
    """Write the same adapter as mlx-lm lays it out: factors transposed, alpha over rank as ``scale``."""
    tensors: dict[str, Weights] = {}
    for name, a, b in _factors(blueprint, seed, number):
        tensors[f"{name}.lora_a"] = a.T
        tensors[f"{name}.lora_b"] = b.T
    write_safetensors(folder / "adapters.safetensors", tensors)
    names = (name.rpartition("layers.")[2] for name, _, _ in _factors(blueprint, seed, number))
    keys = sorted({name.partition(".")[2] for name in names})
    parameters = {"rank": RANK, "scale": ALPHA / RANK, "dropout": 0.0, "keys": keys}
    config = {"fine_tune_type": "lora", "num_layers": blueprint.layers, "lora_parameters": parameters}
    _write_json(folder / "adapter_config.json", config)


def _factors(blueprint: HFBlueprint, seed: int, number: int) -> Iterator[tuple[str, Weights, Weights]]:
    """Name of each adapted module, its factors A (rank, inputs) and B (outputs, rank)."""
    for target in (tensor for tensor in blueprint.tensors if tensor.adapted):
        outputs, inputs = target.shape
        a = draw(linear(f"{target.name}.lora_a", RANK, inputs), seed, number)
        b = draw(Tensor(f"{target.name}.lora_b", (outputs, RANK), deviation=B_DEVIATION), seed, number)
        yield target.name.removesuffix(".weight"), a, b


def _drawn(tensor: Tensor, seed: int) -> Weights:
    values = draw(tensor, seed)
    if tensor.name.endswith("lm_head.weight"):
        # The end of the answer would be no more than another token: with a logit of zero it is never the likeliest.
        values[END] = 0.0
    return values


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8", newline="\n")
