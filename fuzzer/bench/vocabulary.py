"""Vocabulary: what comparing one position of an answer costs, by the length of its list of logprobs.

A server answers with the top k tokens or, where it is asked to, with the whole vocabulary; 128k entries are what large
models have. The answers are made up, so that the oracle is measured and not a server.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence

import msgspec

from fuzzer.bench.card import Figure, Part, Plot, Series, Setting
from oracles.comparison import compare
from oracles.observations import Observation, Position, TokenLogprob

VOCABULARY = 128 * 1024
_TOP_K = (20, 50, 320)
_FULL = (2_048, 32_768, VOCABULARY)
_REPEATS, _FULL_REPEATS = 5, 25
_ROUNDING = 1e-5


class Cost(msgspec.Struct, frozen=True):
    """Milliseconds that a position costs, one that is equal to the bit and one that is rounded differently."""

    entries: int
    equal_ms: float
    rounded_ms: float
    decode_ms: float
    """To read the list from JSON."""


def measure(setting: Setting) -> Part:
    """Top-k lists, then whole vocabularies."""
    repeats = _FULL_REPEATS if setting.full else _REPEATS
    costs = [cost(entries, repeats, random.Random(setting.seed)) for entries in (*_TOP_K, *_FULL)]
    return Part(
        name="vocabulary",
        command=setting.command("vocabulary"),
        figures=figures(costs),
        columns=["entries of a list", "equal, ms", "rounded differently, ms", "read from JSON, ms"],
        rows=[
            [f"{one.entries:,}", f"{one.equal_ms:.3f}", f"{one.rounded_ms:.3f}", f"{one.decode_ms:.3f}"]
            for one in costs
        ],
        plots=[_plot(costs)],
    )


def figures(costs: Sequence[Cost]) -> list[Figure]:
    """The lines of the score card."""
    by_length = {one.entries: one for one in costs}
    top, whole = by_length[50], by_length[VOCABULARY]
    return [
        Figure(what="comparing one position, top 50 of the vocabulary", measured=_words(top)),
        Figure(what=f"comparing one position, all of {VOCABULARY:,} entries", measured=_words(whole)),
    ]


def _words(one: Cost) -> str:
    return (
        f"{one.equal_ms:.3f} ms where both are equal, {one.rounded_ms:.3f} ms where they differ by rounding; "
        f"{one.decode_ms:.3f} ms to read"
    )


def cost(entries: int, repeats: int, rng: random.Random) -> Cost:
    """Medians over ``repeats`` comparisons of one position with ``entries`` entries."""
    logprobs = sorted((-rng.expovariate(0.2) for _ in range(entries)), reverse=True)
    tokens = rng.sample(range(VOCABULARY), entries)
    ours, same = _answer(tokens, logprobs), _answer(tokens, logprobs)
    rounded = _answer(tokens, [logprob + rng.uniform(-_ROUNDING, _ROUNDING) for logprob in logprobs])
    content = msgspec.json.encode(ours.positions[0].top)
    return Cost(
        entries,
        _median_ms(lambda: compare(ours, same), repeats),
        _median_ms(lambda: compare(ours, rounded), repeats),
        _median_ms(lambda: msgspec.json.decode(content, type=list[TokenLogprob]), repeats),
    )


def _answer(tokens: Sequence[int], logprobs: Sequence[float]) -> Observation:
    """An answer of one token, with its list."""
    top = [TokenLogprob(*entry) for entry in zip(tokens, logprobs, strict=True)]
    return Observation([Position(tokens[0], top)])


def _median_ms(work: Callable[[], object], repeats: int) -> float:
    """CPU milliseconds, so that other load on the machine counts little."""
    taken: list[float] = []
    for _ in range(repeats):
        began = time.thread_time()
        work()
        taken.append(1e3 * (time.thread_time() - began))
    return statistics.median(taken)


def _plot(costs: Sequence[Cost]) -> Plot:
    curves = {
        "equal": [one.equal_ms for one in costs],
        "rounded differently": [one.rounded_ms for one in costs],
        "read from JSON": [one.decode_ms for one in costs],
    }
    return Plot(
        name="vocabulary",
        title="Cost of one position by the length of its list",
        x="entries of the list",
        y="CPU, ms",
        series=[
            Series(name, [(one.entries, ms) for one, ms in zip(costs, values, strict=True)])
            for name, values in curves.items()
        ],
        log_x=True,
        log_y=True,
    )
