"""The answer as a plain recomputation gives it: fresh memory for every request, and nobody else in the step."""

from __future__ import annotations

from fuzzer.zoo.arithmetic import Arithmetic
from fuzzer.zoo.forward import forward, logits
from fuzzer.zoo.model import Network
from fuzzer.zoo.requests import Generated, Request
from fuzzer.zoo.sampler import Sampler
from fuzzer.zoo.settings import Settings
from fuzzer.zoo.slot_memory import SlotMemory


def recompute(settings: Settings, network: Network, request: Request) -> list[Generated]:
    weights = network.weights(request.environment)
    memory = SlotMemory(settings.shape, None)
    sampler = Sampler(1, None)
    sampler.open_row(0, request)
    pending = list(request.tokens)
    answer: list[Generated] = []
    for step in range(request.max_tokens):
        arithmetic = Arithmetic(settings.numerics, len(pending))
        hidden = forward(settings.shape, weights, memory, pending, arithmetic)
        answer.append(sampler.sample(0, logits(weights, hidden, arithmetic), 0, step))
        pending = [answer[-1].token]
    return answer
