"""vLLM's OpenAI-style JSON: what ``/v1/completions`` reads and writes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fuzzer.zoo.engine import Run
from fuzzer.zoo.requests import Generated, Sampling
from fuzzer.zoo.text import detokenise, most_likely, piece


class StreamOptions(msgspec.Struct):
    include_usage: bool = False


class CompletionBody(msgspec.Struct):
    model: str
    prompt: str | list[int]
    max_tokens: int = 16
    temperature: float = 1.0
    seed: int | None = None
    logprobs: int | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    return_token_ids: bool = False
    return_tokens_as_token_ids: bool = False
    cache_salt: str = ""
    logit_bias: dict[int, float] = {}
    allowed_token_ids: list[int] = []
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0

    def sampling(self) -> Sampling:
        return Sampling(
            temperature=self.temperature,
            seed=self.seed or 0,
            bias=tuple(self.logit_bias.items()),
            allowed=tuple(self.allowed_token_ids),
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            repeat_penalty=self.repetition_penalty,
            penalise_prompt=self.repetition_penalty != 1.0,
        )


class Logprobs(msgspec.Struct):
    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class Choice(msgspec.Struct):
    text: str
    index: int = 0
    logprobs: Logprobs | None = None
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None


class PromptDetails(msgspec.Struct):
    cached_tokens: int


class Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


class Completion(msgspec.Struct):
    id: str
    model: str
    choices: list[Choice]
    object: str = "text_completion"
    created: int = 0
    usage: Usage | None = None


def whole(number: int, run: Run, body: CompletionBody) -> Completion:
    choice = _choice(run, run.answer, 0, body)
    return Completion(f"cmpl-{number}", body.model, [choice], usage=usage(run))


def chunk(number: int, run: Run, portion: Sequence[Generated], sent: int, body: CompletionBody) -> Completion:
    """One event of a stream in which ``sent`` tokens went before."""
    return Completion(f"cmpl-{number}", body.model, [_choice(run, portion, sent, body)])


def closing(number: int, run: Run, body: CompletionBody) -> Completion:
    """The event that tells only the usage."""
    return Completion(f"cmpl-{number}", body.model, [], usage=usage(run))


def usage(run: Run) -> Usage:
    prompt, answer = len(run.request.tokens), len(run.answer)
    return Usage(prompt, answer, prompt + answer, PromptDetails(run.reused))


def error(status: int, message: str) -> object:
    kind = {400: "BadRequestError", 404: "NotFoundError"}.get(status, "InternalServerError")
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


def _choice(run: Run, portion: Sequence[Generated], sent: int, body: CompletionBody) -> Choice:
    tokens = [generated.token for generated in portion]
    complete = sent + len(portion) == run.request.max_tokens
    return Choice(
        text=detokenise(tokens),
        logprobs=None if body.logprobs is None else _logprobs(portion, sent, body),
        finish_reason="length" if complete else None,
        token_ids=tokens if body.return_token_ids else None,
        prompt_token_ids=list(run.request.tokens) if body.return_token_ids and sent == 0 else None,
    )


def _logprobs(portion: Sequence[Generated], sent: int, body: CompletionBody) -> Logprobs:
    return Logprobs(
        tokens=[_name(generated.token, body) for generated in portion],
        token_logprobs=[float(generated.logprobs[generated.token]) for generated in portion],
        top_logprobs=[_top(generated, body) for generated in portion],
        text_offset=list(range(sent, sent + len(portion))),
    )


def _top(generated: Generated, body: CompletionBody) -> dict[str, float]:
    """The most likely tokens, and the sampled one wherever it stands."""
    top = {_name(token, body): value for token, value in most_likely(generated.logprobs, body.logprobs or 0)}
    top[_name(generated.token, body)] = float(generated.logprobs[generated.token])
    return top


def _name(token: int, body: CompletionBody) -> str:
    return f"token_id:{token}" if body.return_tokens_as_token_ids else piece(token)
