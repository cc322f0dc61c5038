"""The embedded llama-server in a process of its own, with numerics that repeat to the last bit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from fuzzer.models.tiny import TinyModel

_ADDRESS = "listening on "

_CHILD = """
import sys
import xllamacpp as llama

params = llama.CommonParams()
params.model.path, adapters = sys.argv[1], sys.argv[2:]
params.lora_adapters = [llama.CommonAdapterLoraInfo(path, 0.0) for path in adapters]
params.port, params.n_ctx, params.n_parallel, params.warmup = 0, 1024, 1, False
params.n_gpu_layers = 0
params.flash_attn_type = llama.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
params.cache_type_k = params.cache_type_v = llama.ggml_type.GGML_TYPE_F32
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = llama.Server(params)
print("listening on " + server.listening_address, flush=True)
sys.stdin.read()
"""


class EmbeddedServer:
    """A client of one running server."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def post(self, route: str, body: dict[str, Any]) -> dict[str, Any]:
        response = self._client.post(route, json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def logprobs(self, prompt: Sequence[int], scales: Sequence[float] = (0.0, 0.0)) -> list[dict[int, float]]:
        """Logprob of every token of the vocabulary, at each of four generated positions."""
        lora = [{"id": number, "scale": scale} for number, scale in enumerate(scales)]
        body = {"prompt": list(prompt), "lora": lora, "n_predict": 4, "temperature": 0, "n_probs": 2048}
        answer = self.post("/completion", {**body, "cache_prompt": False, "ignore_eos": True})
        positions = answer["completion_probabilities"]
        return [{top["id"]: top["logprob"] for top in position["top_logprobs"]} for position in positions]


@contextmanager
def embedded_server(model: TinyModel, log: Path) -> Iterator[EmbeddedServer]:
    command = [sys.executable, "-P", "-c", _CHILD, str(model.path), *map(str, model.adapters)]
    pipe = subprocess.PIPE
    with (
        log.open("w") as stderr,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr, text=True) as child,
        httpx.Client(base_url=_address(child, log), timeout=30) as client,
    ):
        yield EmbeddedServer(client)


def _address(child: subprocess.Popen[str], log: Path) -> str:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith(_ADDRESS):
            return line.removeprefix(_ADDRESS).strip()
    raise AssertionError(f"the server did not start:\n{log.read_text()[-2000:]}")
