"""From logits to a token, with what each row's request asked for; rows are reused, so their state must be set anew."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from fuzzer.zoo.arithmetic import Floats, log_softmax
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.requests import Generated, Request, Sampling

PLAIN = Sampling()


@dataclass(slots=True)
class Row:
    """Sampling state of one running request; ``logprobs`` is the buffer that its answers are read from."""

    asked: Sampling = PLAIN
    sampling: Sampling = PLAIN
    counts: Counter[int] = field(default_factory=Counter)
    logprobs: Floats | None = None


class Sampler:
    def __init__(self, rows: int, bug: Bug | None) -> None:
        self._bug = bug
        self._rows = [Row() for _ in range(rows)]

    def open_row(self, row: int, request: Request) -> None:
        state, previous = self._rows[row], self._rows[row].asked
        state.asked = state.sampling = request.sampling
        if self._bug is Bug.MASK_LEFT_IN_ROW and not request.sampling.allowed:
            state.sampling = replace(request.sampling, allowed=previous.allowed)
        if self._bug is Bug.PENALTIES_LEFT_IN_ROW and not _penalises(request.sampling):
            state.sampling = _with_penalties_of(previous, request.sampling)
            return
        state.counts = Counter(request.tokens if request.sampling.penalise_prompt else ())

    def move_row(self, source: int, target: int) -> None:
        moved = self._rows[source]
        if self._bug is Bug.BIAS_NOT_MOVED_WITH_ROW:
            moved.sampling = replace(moved.sampling, bias=self._rows[target].sampling.bias)
        self._rows[source], self._rows[target] = self._rows[target], moved

    def sample(self, row: int, logits: Floats, reused: int, step: int) -> Generated:
        """Draw the ``step``-th token of an answer whose prompt had ``reused`` cached tokens."""
        state = self._rows[row]
        stale = self._bug is Bug.LOGPROB_BUFFER_NOT_REWRITTEN and reused and step == 0
        if state.logprobs is None or not stale:
            state.logprobs = log_softmax(logits)
        token = _choose(_shaped(logits, state), state.sampling, step)
        if _penalises(state.sampling):
            state.counts[token] += 1
        return Generated(token, state.logprobs)


def _choose(logits: Floats, sampling: Sampling, step: int) -> int:
    if sampling.temperature <= 0:
        return int(logits.argmax())
    noise = np.random.default_rng((sampling.seed, step)).gumbel(size=len(logits))
    return int((logits / sampling.temperature + noise).argmax())


def _shaped(logits: Floats, row: Row) -> Floats:
    """Logits after bias, penalties and the mask of allowed tokens."""
    sampling = row.sampling
    if not (sampling.bias or sampling.allowed or _penalises(sampling)):
        return logits
    shaped = logits.copy()
    for token, bias in sampling.bias:
        shaped[token] += np.float32(bias)
    if _penalises(sampling):
        _penalise(shaped, row)
    if sampling.allowed:
        masked = np.full_like(shaped, -np.inf)
        allowed = list(sampling.allowed)
        masked[allowed] = shaped[allowed]
        return masked
    return shaped


def _penalise(logits: Floats, row: Row) -> None:
    sampling = row.sampling
    for token, count in row.counts.items():
        value = logits[token]
        value = value / sampling.repeat_penalty if value > 0 else value * sampling.repeat_penalty
        logits[token] = value - sampling.presence_penalty - count * sampling.frequency_penalty


def _penalises(sampling: Sampling) -> bool:
    return bool(sampling.presence_penalty or sampling.frequency_penalty or sampling.repeat_penalty != 1.0)


def _with_penalties_of(previous: Sampling, sampling: Sampling) -> Sampling:
    return replace(
        sampling,
        presence_penalty=previous.presence_penalty,
        frequency_penalty=previous.frequency_penalty,
        repeat_penalty=previous.repeat_penalty,
    )
