"""A dense random model of half a megabyte and LoRA adapters for it, written with gguf and numpy alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from string import ascii_lowercase

import gguf
import numpy as np
import numpy.typing as npt

VOCABULARY = 320
WIDTH = 64
FEED_FORWARD = 128
LAYERS = 2
HEADS = 4
KV_HEADS = 2
KV_WIDTH = WIDTH // HEADS * KV_HEADS
RANK = 4

Weights = npt.NDArray[np.float32]
Tensors = Iterator[tuple[str, Weights]]


def write_model(path: Path) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    _add_vocabulary(writer)
    _finish(writer, _model_tensors(np.random.default_rng(7)))


def write_adapter(path: Path, *, seed: int = 1, width: int = WIDTH) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 8.0)
    _finish(writer, _adapter_tensors(np.random.default_rng(seed), width))


def _add_vocabulary(writer: gguf.GGUFWriter) -> None:
    pairs = ("\u2581" + a + b for a, b in product(ascii_lowercase, repeat=2))
    tokens = ["<unk>", "<s>", "</s>", "\n", *ascii_lowercase, "\u2581", *pairs][:VOCABULARY]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.NORMAL] * (len(tokens) - len(kinds))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_vocab_size(len(tokens))


def _model_tensors(rng: np.random.Generator) -> Tensors:
    def normal(*shape: int, gain: float = 1.0) -> Weights:
        weights: Weights = (rng.standard_normal(shape) * gain / np.sqrt(shape[-1])).astype(np.float32)
        return weights

    yield "token_embd.weight", rng.standard_normal((VOCABULARY, WIDTH)).astype(np.float32)
    yield "output_norm.weight", np.ones(WIDTH, np.float32)
    yield "output.weight", (0.3 * rng.standard_normal((VOCABULARY, WIDTH))).astype(np.float32)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        yield f"{block}.attn_norm.weight", np.ones(WIDTH, np.float32)
        yield f"{block}.ffn_norm.weight", np.ones(WIDTH, np.float32)
        yield f"{block}.attn_q.weight", normal(WIDTH, WIDTH, gain=2.0)
        yield f"{block}.attn_k.weight", normal(KV_WIDTH, WIDTH, gain=2.0)
        yield f"{block}.attn_v.weight", normal(KV_WIDTH, WIDTH)
        yield f"{block}.attn_output.weight", normal(WIDTH, WIDTH)
        yield f"{block}.ffn_gate.weight", normal(FEED_FORWARD, WIDTH)
        yield f"{block}.ffn_up.weight", normal(FEED_FORWARD, WIDTH)
        yield f"{block}.ffn_down.weight", normal(WIDTH, FEED_FORWARD)


def _adapter_tensors(rng: np.random.Generator, width: int) -> Tensors:
    for layer, (name, out) in product(range(LAYERS), (("attn_q", width), ("attn_v", KV_WIDTH))):
        tensor = f"blk.{layer}.{name}.weight"
        yield f"{tensor}.lora_a", (rng.standard_normal((RANK, width)) / np.sqrt(width)).astype(np.float32)
        yield f"{tensor}.lora_b", (0.5 * rng.standard_normal((out, RANK))).astype(np.float32)


def _finish(writer: gguf.GGUFWriter, tensors: Tensors) -> None:
    for name, values in tensors:
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
