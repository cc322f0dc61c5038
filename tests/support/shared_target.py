"""The scene in which others use a server under test too: what is seen of them, and that nothing they do is its bug."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
from running import Ended, stalefuzz
from somebody_else import somebody_else

Act = Callable[[httpx.Client, int], httpx.Response]


@dataclass(frozen=True, slots=True)
class SharedTarget:
    """A server of somebody's and its engine; a run of it may take so long, and a test so much longer.

    ``scenarios`` leave out those that show a bug which the server has: none means all.
    """

    url: str
    engine: str
    time: str = "120s"
    patience_s: float = 240.0
    scenarios: tuple[str, ...] = ()

    def fuzzed(self, folder: Path) -> Ended:
        """A short run against it, which is its own reference."""
        folder.mkdir()
        words = ("--engine", self.engine, "--reference", "bypass", "--max-steps", "30", "--seed", "3")
        chosen = [word for scenario in self.scenarios for word in ("--scenario", scenario)]
        target = ("run", "--target", self.url, *words, "--time", self.time)
        return stalefuzz(*target, *chosen, folder=folder, patience_s=self.patience_s)

    def counts_requests_of_others(self, act: Act, folder: Path) -> None:
        """While somebody sends requests they are counted, afterwards none are; both runs are clean."""
        with somebody_else(self.url, act):
            crowded = self.fuzzed(folder / "crowded")
        quiet = self.fuzzed(folder / "quiet")
        assert (crowded.status, quiet.status) == (0, 0), crowded.said + quiet.said
        assert crowded.record["others"]["work"] > 0
        nobody = {"requests": 0, "work": 0, "unit": "requests", "changes": {}}
        # It may come to prompts of the run before.
        assert quiet.record["others"] | {"earlier": 0} == {"told_by": "/metrics", **nobody, "earlier": 0}

    def blames_nothing_on_reloads(self, act: Act, folder: Path) -> None:
        """Adapter a, which somebody loads again and again, is no bug of the server, and its changes are told."""
        with somebody_else(self.url, act):
            run = self.fuzzed(folder / "crowded")
        assert run.record["findings"] == []
        assert run.record["others"]["changes"]["the folder of a"] > 0


def completes(client: httpx.Client, number: int) -> httpx.Response:
    """A request of somebody's, in vLLM's format."""
    prompt = [5 + number % 900, *range(40, 80)]
    return client.post("/v1/completions", json={"model": "base", "prompt": prompt, "max_tokens": 1, "temperature": 0})


def folders(client: httpx.Client) -> dict[str, str]:
    """Where each adapter was loaded from, in vLLM's format."""
    return {card["id"]: card["root"] for card in client.get("/v1/models").json()["data"] if card.get("parent")}


def reloads(client: httpx.Client, path: str) -> httpx.Response:
    """Adapter a loaded again in place from a folder, in vLLM's format."""
    adapter = {"lora_name": "a", "lora_path": path, "load_inplace": True}
    return client.post("/v1/load_lora_adapter", json=adapter)
