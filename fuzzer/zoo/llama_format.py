"""llama-server's JSON: what ``/completion`` reads and writes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fuzzer.zoo.engine import Run
from fuzzer.zoo.requests import Generated, Sampling
from fuzzer.zoo.text import detokenise, most_likely, piece, piece_bytes


class AdapterScale(msgspec.Struct):
    id: int
    scale: float


class CompletionBody(msgspec.Struct):
    prompt: str | list[int]
    n_predict: int = -1
    temperature: float = 0.8
    seed: int = 0
    n_probs: int = 0
    cache_prompt: bool = True
    id_slot: int = -1
    stream: bool = False
    return_tokens: bool = False
    lora: list[AdapterScale] | None = None
    logit_bias: list[tuple[int, float | bool]] = []
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0

    def sampling(self) -> Sampling:
        banned = -1e9
        return Sampling(
            temperature=self.temperature,
            seed=self.seed,
            bias=tuple((token, banned if bias is False else float(bias)) for token, bias in self.logit_bias),
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            repeat_penalty=self.repeat_penalty,
            penalise_prompt=True,
        )


class Candidate(msgspec.Struct):
    id: int
    token: str
    bytes: list[int]
    logprob: float


class Position(Candidate):
    top_logprobs: list[Candidate]


class Timings(msgspec.Struct):
    cache_n: int
    prompt_n: int
    predicted_n: int


class Part(msgspec.Struct):
    """One event of a stream."""

    content: str
    tokens: list[int]
    stop: bool
    id_slot: int
    tokens_predicted: int
    tokens_evaluated: int
    index: int = 0
    completion_probabilities: list[Position] | msgspec.UnsetType = msgspec.UNSET


class Final(Part):
    """The last event of a stream, and the whole answer without one."""

    model: str = "zoo"
    stop_type: str = "limit"
    truncated: bool = False
    tokens_cached: int = 0
    timings: Timings | None = None


def part(run: Run, portion: Sequence[Generated], body: CompletionBody) -> Part:
    return Part(
        content=detokenise(generated.token for generated in portion),
        tokens=[generated.token for generated in portion],
        stop=False,
        id_slot=run.row,
        tokens_predicted=len(run.answer),
        tokens_evaluated=len(run.request.tokens),
        completion_probabilities=_positions(portion, body.n_probs),
    )


def final(run: Run, answer: Sequence[Generated], body: CompletionBody) -> Final:
    """``answer`` is empty at the end of a stream, whose parts told it."""
    prompt = len(run.request.tokens)
    return Final(
        content=detokenise(generated.token for generated in answer),
        tokens=[generated.token for generated in answer] if body.return_tokens else [],
        stop=True,
        id_slot=run.row,
        tokens_predicted=len(run.answer),
        tokens_evaluated=prompt,
        tokens_cached=prompt + max(0, len(run.answer) - 1),
        timings=Timings(run.reused, prompt - run.reused, len(run.answer)),
        completion_probabilities=_positions(answer, body.n_probs),
    )


def error(status: int, message: str) -> object:
    kind = {400: "invalid_request_error", 404: "not_found_error"}.get(status, "server_error")
    return {"error": {"code": status, "message": message, "type": kind}}


def _positions(answer: Sequence[Generated], count: int) -> list[Position] | msgspec.UnsetType:
    if count <= 0:
        return msgspec.UNSET
    return [_position(generated, count) for generated in answer]


def _position(generated: Generated, count: int) -> Position:
    token = generated.token
    top = [
        Candidate(other, piece(other), piece_bytes(other), value)
        for other, value in most_likely(generated.logprobs, count)
    ]
    return Position(token, piece(token), piece_bytes(token), float(generated.logprobs[token]), top)
