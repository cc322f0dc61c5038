"""Each tiny model on the embedded llama-server: it loads, it is not degenerate, and its adapters matter."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_server import EmbeddedServer, embedded_server

from fuzzer.models import vocabulary
from fuzzer.models.tiny import NAMES, TinyModel, tiny_model

PROMPT = tuple(random.Random(7).sample(range(130, 2048), 60))
OTHER_START = (PROMPT[0] + 1, *PROMPT[1:])


@pytest.fixture(scope="module", params=NAMES)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return tiny_model(request.param, cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def server(model: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    with embedded_server(model, tmp_path_factory.mktemp("server") / "log") as running:
        yield running


def test_every_logprob_is_finite(server: EmbeddedServer, model: TinyModel) -> None:
    positions = server.logprobs(PROMPT)
    assert len(positions) == 4
    for position in positions:
        assert len(position) == model.vocabulary
        assert all(-40 < logprob < 0 for logprob in position.values())


def test_the_distribution_is_neither_flat_nor_saturated(server: EmbeddedServer) -> None:
    assert all(-5 < max(position.values()) < -0.1 for position in server.logprobs(PROMPT))


@pytest.mark.parametrize("scales", [(1.0, 0.0), (0.0, 1.0)], ids=["first", "second"])
def test_an_adapter_moves_logprobs(server: EmbeddedServer, scales: tuple[float, float]) -> None:
    assert _delta(server.logprobs(PROMPT), server.logprobs(PROMPT, scales)) > 1.0


def test_the_two_adapters_differ(server: EmbeddedServer) -> None:
    assert _delta(server.logprobs(PROMPT, (1.0, 0.0)), server.logprobs(PROMPT, (0.0, 1.0))) > 1.0


def test_a_small_change_of_scale_shows(server: EmbeddedServer) -> None:
    assert _delta(server.logprobs(PROMPT, (1.0, 0.0)), server.logprobs(PROMPT, (0.99, 0.0))) > 0.005


def test_the_first_token_still_matters_sixty_tokens_later(server: EmbeddedServer) -> None:
    assert _delta(server.logprobs(PROMPT), server.logprobs(OTHER_START)) > 0.01


def test_two_cold_runs_are_equal(server: EmbeddedServer, model: TinyModel, tmp_path: Path) -> None:
    with embedded_server(model, tmp_path / "log") as again:
        assert again.logprobs(PROMPT, (1.0, 0.5)) == server.logprobs(PROMPT, (1.0, 0.5))


def test_text_becomes_the_words_it_shows(server: EmbeddedServer) -> None:
    pieces = vocabulary.vocabulary().pieces
    ids = [pieces.index("\u2581" + word) for word in ("a", "bz", "abc")]
    assert server.post("/tokenize", {"content": "a bz abc"}) == {"tokens": ids}


def test_any_ascii_text_can_be_a_prompt(server: EmbeddedServer) -> None:
    text = '{"Key": [1, 2]} ~!@#$%^&*()_+|<>?\n'
    assert server.post("/completion", {"prompt": text, "n_predict": 1})["tokens_predicted"] == 1


def _delta(left: list[dict[int, float]], right: list[dict[int, float]]) -> float:
    """Largest difference at the first position, over the fifty likeliest tokens of the left side."""
    likely = sorted(left[0], key=left[0].__getitem__)[-50:]
    delta = max(abs(left[0][token] - right[0][token]) for token in likely)
    assert math.isfinite(delta)
    return delta
