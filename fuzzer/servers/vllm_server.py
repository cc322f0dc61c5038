"""vLLM's OpenAI server: token-id prompts, top-k logprobs by id, adapters by model name, cache salts, cached counts.

Field names are vLLM's own, vllm/entrypoints/openai of 0.28 to 0.32. Logprobs of *prompts* are never asked for: such
requests go round the prefix cache.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

import msgspec

from fuzzer.errors import UnreachableError
from fuzzer.servers.adapter_versions import (
    chosen,
    folder_after,
    folder_of,
    loads,
    version_name,
    version_of,
    version_path,
)
from fuzzer.servers.http import Connection, decode, kept_if_usable
from fuzzer.servers.metrics import counters
from fuzzer.servers.openai_server import OpenAIServer, adapter_named
from fuzzer.servers.openai_wire import Completion
from fuzzer.servers.probed_texts import SAMPLE
from fuzzer.servers.protocol import Action, Post, Request, RequestRefused, Use
from scenarios.capabilities import LASTING_IN_PYTHON, Capabilities
from scenarios.operations import Flush, Operation, Reload, ReloadWeights, Sampling, Sleep, Unload
from scenarios.prompts import TokenSpace

ENGINE = "vllm"
_TOP_KS = (50, 20, 5)
"""What is asked for, likeliest to be enough first; a server allows 20 unless told otherwise."""
_CONTEXT = 2048
_BLOCK = 16
_SPECIAL_TOKENS = 4
_LARGE_VOCABULARY = 20_000
_FINISHED = "vllm:request_success_total"
_IN_FLIGHT = "vllm:num_requests_running"
_SAMPLED = 200
_LOAD = "/v1/load_lora_adapter"
_FORGET = Post("/reset_prefix_cache", {})
_ALWAYS = ("complete", "start", "await", "join", "abort", "evict")
_SAMPLINGS: dict[Sampling, dict[str, Any]] = {
    Sampling.PENALTIES: {"repetition_penalty": 1.5, "presence_penalty": 0.5},
    # So strong that every token chosen under it is one of these, and none without it: it shows wherever it goes.
    Sampling.BIAS: {"logit_bias": {str(token): 50.0 for token in range(4, 300, 10)}},
    Sampling.GRAMMAR: {"allowed_token_ids": list(range(5, 300, 3))},
    Sampling.SEEDED: {"temperature": 1.0, "seed": 7},
}


class _Model(msgspec.Struct, frozen=True):
    id: str
    root: str | None = None
    parent: str | None = None
    owned_by: str = ""
    max_model_len: int | None = None


class _Models(msgspec.Struct, frozen=True):
    data: list[_Model]


class _Tokenized(msgspec.Struct, frozen=True):
    tokens: list[int]


class _Version(msgspec.Struct, frozen=True):
    version: str


class VllmSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What a launcher knows of its own server and may do to it."""

    vocabulary: int | None = None
    window: int | None = None
    recurrent: bool = False
    paths: tuple[str, ...] = ()
    """Adapter folders on the server's machine, for loading them again; version v of adapter n is path n + v."""
    versioned: bool = False
    """Each version of each adapter has a name of its own, as on a reference."""
    only: tuple[str, ...] | None = None
    """Names of the adapters to use; None: all that the server has."""
    variables: Mapping[str, str] = {}
    """What a reproducer calls the folders."""
    weights: tuple[str, ...] = ()
    """Folders of the model's weights on the server's machine, those it starts with first, for loading others."""
    forgets: bool = False
    """Whether it has to be told to forget its blocks once it has loaded other weights; vLLM leaves that to its user."""
    admin: bool = False
    """Whether what other users of the server would notice is allowed."""
    reuse: bool = True
    """Whether it is to cache at all."""
    swaps: bool = False
    """Whether its adapters may be loaded over each other, from the folders that it tells."""
    sleeps: bool = False
    """Whether it can be put to sleep; a server that was not started for it may not wake up again."""


class Probed(msgspec.Struct, frozen=True):
    """What only trying tells, and what is the same for every server of one build, model and command line."""

    space: TokenSpace
    top_logprobs: int
    cached_counts: bool
    dev_operations: tuple[str, ...]
    """Kinds of operations that routes of the development mode can do."""


class VllmServer(OpenAIServer):
    """A vLLM server that answers at ``url``.

    ``probed`` is for a launcher that starts a server often: trying leaves state behind, which one that is to have
    seen nothing must not have.
    """

    engine = ENGINE

    def __init__(self, url: str, setup: VllmSetup | None = None, probed: Probed | None = None) -> None:
        super().__init__(url)
        self._setup = setup or VllmSetup()
        self.variables = self._setup.variables
        with kept_if_usable(self._connection):
            self._shake_hands(url, probed)

    def _shake_hands(self, url: str, probed: Probed | None) -> None:
        try:
            self.version = decode(self._connection.get("/version"), _Version).version
            models = decode(self._connection.get("/v1/models"), _Models).data
            self._base = next(model for model in models if model.parent is None)
            roots = {model.id: model.root or "" for model in models if model.parent is not None}
            self._names = chosen(list(roots), self._setup.only)
            self._paths = self._setup.paths or self._told([roots[name] for name in self._names])
            self.probed = probed or self._probe()
            self.capabilities = self._state_capabilities()
        except (RequestRefused, StopIteration) as refusal:
            raise UnreachableError(f"{url} answers, but not as vLLM does: {refusal}") from None

    def _told(self, roots: Sequence[str]) -> Sequence[str]:
        """The folders that the server says its adapters came from, where it may and can load them again."""
        able = self._setup.swaps and all(roots) and self._connection.has(_LOAD)
        return roots if able else ()

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON that ``request`` is sent as."""
        body: dict[str, Any] = {
            "model": self._model(request),
            "prompt": request.prompt,
            "max_tokens": request.tokens,
            "temperature": 0,
            "ignore_eos": True,
            "logprobs": self.capabilities.top_logprobs,
            "return_tokens_as_token_ids": True,
            "return_token_ids": True,
        }
        # A salt that nobody has used before: the engine's own way to compute everything anew.
        salt = request.salt if request.reuse else f"stalefuzz-{token_hex(8)}"
        if salt:
            body["cache_salt"] = salt
        return body | _SAMPLINGS.get(request.sampling, {})

    def action(self, operation: Operation) -> Action:
        """What an operation is on the wire; a server that is put to sleep is woken up."""
        match operation:
            case Flush():
                return [_FORGET]
            case Sleep():
                return [Post("/sleep?level=1", {}), Post("/wake_up", {})]
            case Reload(adapter=adapter, version=version) if self._paths:
                return [self._load(adapter, version, load_inplace=True)]
            case Unload(adapter=adapter, version=version) if self._paths:
                unload = Post("/v1/unload_lora_adapter", {"lora_name": self._names[adapter]})
                return [unload, self._load(adapter, version)]
            case ReloadWeights(version=version) if self._setup.weights:
                loading = {"weights_path": version_of(self._setup.weights, version)}
                load = Post("/collective_rpc", {"method": "reload_weights", "kwargs": loading})
                return [load, _FORGET] if self._setup.forgets else [load]
            case _:
                return []

    @property
    def use(self) -> Use:
        """Requests finished, and where model and adapters were loaded from."""
        return _VllmUse(self._connection, self._base.id, self._names, self._paths)

    def _load(self, adapter: int, version: int, **how: bool) -> Post:
        path = version_path(self._paths, adapter, version)
        return Post(_LOAD, {"lora_name": self._names[adapter], "lora_path": path} | how)

    def _model(self, request: Request) -> str:
        named = adapter_named(request)
        if named is None:
            return self._base.id
        return version_name(*named) if self._setup.versioned else self._names[named[0]]

    def _state_capabilities(self) -> Capabilities:
        adapters = len(self._setup.paths) if self._setup.versioned else len(self._names)
        block, blocks = cache_config(self._connection)
        return Capabilities(
            space=self.probed.space,
            context=self._base.max_model_len or _CONTEXT,
            operations=(*_ALWAYS, *self._admin_operations()),
            samplings=(Sampling.PLAIN, *_SAMPLINGS),
            top_logprobs=self.probed.top_logprobs,
            adapters=adapters,
            adapter_names=adapters > 0,
            cached_counts=self.probed.cached_counts,
            bypass=True,
            bypass_how="a fresh cache_salt",
            salts=True,
            slots=8,
            block=block,
            cache_tokens=blocks * block if blocks is not None else None,
            window=self._setup.window,
            recurrent=self._setup.recurrent,
            lasting=LASTING_IN_PYTHON,
        )

    def _admin_operations(self) -> list[str]:
        if not self._setup.admin:
            return []
        return [*self.probed.dev_operations, *loads(self._paths, self._setup.weights)]

    def _probe(self) -> Probed:
        space = self._space()
        return Probed(
            space=space,
            top_logprobs=self._top_k(),
            cached_counts=not self._setup.reuse or self._tells_cached(space),
            dev_operations=self._dev_operations() if self._setup.admin else (),
        )

    def _dev_operations(self) -> tuple[str, ...]:
        """What routes of the development mode can do, which a server need not have."""
        try:
            self.perform(Flush())
        except RequestRefused:
            return ()
        return ("flush", "sleep") if self._setup.sleeps else ("flush",)

    def _top_k(self) -> int:
        return next((most for most in _TOP_KS if self._asked([5, 6, 7], logprobs=most) is not None), 0)

    def _tells_cached(self, space: TokenSpace) -> bool:
        """Whether the same long prompt again, under a salt of its own, is said to be cached."""
        prompt = [space.first + number % 7 for number in range(2 * cache_config(self._connection)[0] + 2)]
        salt = f"stalefuzz-{token_hex(8)}"
        answers = [self._asked(prompt, cache_salt=salt) for _ in range(2)]
        usage = answers[-1].usage if answers[-1] is not None else None
        return usage is not None and bool(usage.cached)

    def _space(self) -> TokenSpace:
        vocabulary = self._setup.vocabulary or self._vocabulary()
        if vocabulary < _LARGE_VOCABULARY:
            return TokenSpace(_SPECIAL_TOKENS, max(1, vocabulary - _SPECIAL_TOKENS))
        # Real vocabularies keep special tokens at both ends.
        return TokenSpace(1000, vocabulary * 9 // 10 - 1000)

    def _vocabulary(self) -> int:
        """How many tokens there are at least; asked of the tokenizer, since one id too high kills the engine."""
        texts = [SAMPLE[at : at + _SAMPLED] for at in range(0, len(SAMPLE), _SAMPLED)]
        bodies = [{"model": self._base.id, "prompt": text, "add_special_tokens": False} for text in texts]
        answers = [decode(self._connection.post("/tokenize", body), _Tokenized) for body in bodies]
        return 1 + max(token for answer in answers for token in answer.tokens)

    def _asked(self, prompt: Sequence[int], **fields: Any) -> Completion | None:
        """The answer to a probe; None where it was refused."""
        body = {"model": self._base.id, "prompt": prompt, "max_tokens": 1, "temperature": 0} | fields
        try:
            return decode(self._connection.post(self.path, body), Completion)
        except RequestRefused:
            return None


class _VllmUse(Use):
    """Of what requests of ours ask for: ``base``, the model, and ``adapters``, with the folders to load them from."""

    def __init__(self, connection: Connection, base: str, adapters: Sequence[str], paths: Sequence[str]) -> None:
        self._connection = connection
        self._names = {base, *adapters}
        self._adapters = adapters
        self._paths = paths
        self.told_by = "/metrics" if counters(connection, (_IN_FLIGHT,)) else ""

    def environment(self) -> dict[str, str]:
        """The folder of each model and adapter."""
        models = decode(self._connection.get("/v1/models"), _Models).data
        return {folder_of(model.id): model.root or "" for model in models if model.id in self._names}

    def after(self, operation: Operation) -> dict[str, str]:
        """The folder of an adapter that is loaded again."""
        return folder_after(operation, self._adapters, self._paths)

    def work(self) -> int | None:
        """Requests that came to an end; their counter is there from the first one on."""
        if not self.told_by:
            return None
        return int(counters(self._connection, (_FINISHED,)).get(_FINISHED, 0))


def speaks_vllm(connection: Connection) -> bool:
    """Whether the models at this server are vLLM's."""
    try:
        models = decode(connection.get("/v1/models"), _Models).data
        return any(model.owned_by == "vllm" for model in models)
    except RequestRefused:
        return False


def cache_config(connection: Connection) -> tuple[int, int | None]:
    """Tokens of a cache block, and how many blocks there are where that is told; from the metrics."""
    try:
        metrics = connection.get("/metrics").decode("utf-8", "replace")
    except RequestRefused:
        return _BLOCK, None
    config = next((line for line in metrics.splitlines() if "cache_config_info{" in line), "")
    return _labelled(config, "block_size") or _BLOCK, _labelled(config, "num_gpu_blocks")


def _labelled(line: str, label: str) -> int | None:
    """The whole number in a label of a metric."""
    found = re.search(rf'[{{,]{label}="(\d+)"', line)
    return int(found[1]) if found else None
