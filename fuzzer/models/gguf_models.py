"""Writes a blueprint as a GGUF file that llama.cpp loads; the bytes depend on blueprint and seed alone."""

from __future__ import annotations

from pathlib import Path

from gguf import GGUFWriter

from fuzzer.models import vocabulary
from fuzzer.models.blueprint import Blueprint, Setting
from fuzzer.models.weights import draw


def write_model(path: Path, blueprint: Blueprint, seed: int) -> None:
    """Write the model with random weights from ``seed``."""
    writer = GGUFWriter(path, blueprint.architecture)
    writer.add_type("model")
    writer.add_name("stalefuzz tiny")
    for key, value in blueprint.settings.items():
        _add_setting(writer, f"{blueprint.architecture}.{key}", value)
    _add_vocabulary(writer)
    for tensor in blueprint.tensors:
        writer.add_tensor(tensor.name, draw(tensor, seed))
    write_out(writer)


def write_out(writer: GGUFWriter) -> None:
    """Write everything that was added, and close the file."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_setting(writer: GGUFWriter, key: str, value: Setting) -> None:
    if isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    else:
        writer.add_array(key, value)


def _add_vocabulary(writer: GGUFWriter) -> None:
    words = vocabulary.vocabulary()
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words.pieces)
    writer.add_token_scores(words.scores)
    writer.add_token_types(words.types)
    writer.add_unk_token_id(vocabulary.UNKNOWN)
    writer.add_bos_token_id(vocabulary.BEGIN)
    writer.add_eos_token_id(vocabulary.END)
