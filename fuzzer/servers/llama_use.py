"""What llama-server tells of its own use: tokens in /metrics, else the last task of each slot; global scales."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from fuzzer.servers.http import Connection, decode
from fuzzer.servers.metrics import counters
from fuzzer.servers.protocol import Occupant, Request, RequestRefused, Use
from oracles.observations import Observation
from scenarios.environment import adapter_letter
from scenarios.operations import Operation, SetScales

_TOTALS = ("llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total")


class _Scale(msgspec.Struct, frozen=True):
    id: int
    scale: float


class _Slot(msgspec.Struct, frozen=True):
    id_task: int | None = None
    n_prompt_tokens: int | None = None


class LlamaUse(Use):
    """Read over the connection of the adapter; ``adapters`` that the server was started with."""

    unit = "tokens"

    def __init__(self, connection: Connection, adapters: int) -> None:
        self._connection = connection
        self._adapters = adapters
        self._has_metrics = bool(counters(connection, _TOTALS))
        self.told_by = "/metrics" if self._has_metrics else "/slots" if self.occupants() else ""

    def environment(self) -> dict[str, str]:
        """The global scale of each adapter."""
        if not self._adapters:
            return {}
        scales = decode(self._connection.get("/lora-adapters"), list[_Scale])
        return {_name(one.id): _value(one.scale) for one in scales}

    def after(self, operation: Operation) -> dict[str, str]:
        """The scales that were set; adapters that were not named are off."""
        if not isinstance(operation, SetScales):
            return {}
        off = {_name(adapter): _value(0.0) for adapter in range(self._adapters)}
        return off | {_name(one.adapter): _value(one.scale) for one in operation.scales}

    def work(self) -> int | None:
        """Tokens computed, of prompts and of answers."""
        total = sum(counters(self._connection, _TOTALS).values()) if self._has_metrics else math.nan
        return int(total) if math.isfinite(total) else None

    def effort(self, request: Request, answer: Observation | None) -> int:
        """What it computed; all that it could have, where it did not get to its end."""
        if answer is None or answer.computed is None:
            return len(request.prompt) + request.tokens
        return answer.computed + len(answer.positions)

    def occupants(self) -> tuple[Occupant, ...]:
        """The last task of each slot; empty for a server started with --no-slots."""
        try:
            slots = decode(self._connection.get("/slots"), list[_Slot])
        except RequestRefused:
            return ()
        return tuple(Occupant(slot.id_task, slot.n_prompt_tokens) for slot in slots)


def _name(adapter: int) -> str:
    return f"the global scale of adapter {adapter_letter(adapter)}"


def _value(scale: Any) -> str:
    # The server keeps it in single precision.
    return f"{scale:.5g}"
