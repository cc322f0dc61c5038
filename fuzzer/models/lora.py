"""Writes low-rank adapters for a tiny model, strong enough that scale 0 and scale 1 cannot be mistaken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gguf import GGUFWriter

from fuzzer.models.blueprint import Blueprint, Tensor, linear
from fuzzer.models.gguf_models import write_out
from fuzzer.models.weights import draw

RANK = 4
ALPHA = 8.0
B_DEVIATION = 0.5


def write_adapter(
    path: Path, blueprint: Blueprint, seed: int, number: int, *, b_deviation: float = B_DEVIATION
) -> None:
    """Write adapter ``number`` of the model that has this blueprint and seed; each number is another adapter."""
    writer = GGUFWriter(path, blueprint.architecture)
    writer.add_type("adapter")
    writer.add_name(f"stalefuzz tiny adapter {number}")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", ALPHA)
    for factor in _factors(blueprint, b_deviation):
        writer.add_tensor(factor.name, draw(factor, seed, number))
    write_out(writer)


def _factors(blueprint: Blueprint, b_deviation: float) -> Iterator[Tensor]:
    for target in (tensor for tensor in blueprint.tensors if tensor.adapted):
        outputs, inputs = target.shape
        yield linear(f"{target.name}.lora_a", RANK, inputs)
        yield Tensor(f"{target.name}.lora_b", (outputs, RANK), deviation=b_deviation)
