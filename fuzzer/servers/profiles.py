"""Profiles: how servers behind OpenAI-style routes differ, as data. A user can write one in stalefuzz.toml.

Whatever a profile leaves open is found out by asking: whether prompts may be token ids, which logprobs come back,
whether cached tokens are told.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

FRESH = "{fresh}"
"""Stands for a value that nobody has used before."""
CACHED = "usage.prompt_tokens_details.cached_tokens"

Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Route = Annotated[str, msgspec.Meta(pattern=r"^/[^\s?#]+$")]
Path = Annotated[str, msgspec.Meta(pattern=r"^[^.\s]+(\.[^.\s]+)*$")]


class Profile(msgspec.Struct, frozen=True, kw_only=True, eq=False, rename="kebab", forbid_unknown_fields=True):
    """One kind of server. Two profiles are the same only where they are one object."""

    name: Name
    server: str = ""
    """What people call it, where that is not the name."""
    route: Route = "/v1/completions"
    """One that ends in ``/chat/completions`` takes the prompt as a message of the user."""
    owners: list[str] = []
    """``owned_by`` of its models, by which it is recognised."""
    always: dict[str, Any] = {}
    """Fields of every request."""
    bypass: dict[str, Any] | None = None
    """Fields that make a request skip the cache; None where there are none."""
    salt: str | None = None
    """The field of a request that holds its tenant key."""
    adapter_models: bool = False
    """Whether an adapter is asked for by naming it as the model."""
    adapter_field: str | None = None
    """The field of a request that names its adapter, where that is not the model."""
    token_ids: bool = True
    """Whether prompts of token ids are worth trying."""
    cached: Path = CACHED
    """Where an answer tells how many prompt tokens were not computed: keys with dots between them."""
    flush: Route | None = None
    """A route that makes it forget every cached prefix."""

    @property
    def chats(self) -> bool:
        """Whether prompts are messages."""
        return self.route.endswith("/chat/completions")


OPENAI = Profile(name="openai", server="an OpenAI-compatible server", adapter_models=True)
OPENAI_CHAT = Profile(name="openai-chat", route="/v1/chat/completions", adapter_models=True, token_ids=False)
TENSORRT_LLM = Profile(name="tensorrt-llm", server="trtllm-serve", owners=["tensorrt_llm"], always={"ignore_eos": True})
"""tensorrt_llm/serve/openai_protocol.py, CompletionRequest: prompts of ids; every unknown field is refused, and none of
those known is a cache salt. Adapters are whole objects there (``lora_request``), which a profile cannot spell."""
TENSORRT_LLM_CHAT = Profile(
    name="tensorrt-llm-chat",
    route="/v1/chat/completions",
    always={"ignore_eos": True},
    bypass={"cache_salt": FRESH},
    salt="cache_salt",
    token_ids=False,
)
"""ChatCompletionRequest of the same file has a cache salt, so that the server can be its own reference there."""
LMDEPLOY = Profile(
    name="lmdeploy",
    owners=["lmdeploy"],
    always={"ignore_eos": True, "top_k": 1},
    adapter_models=True,
    token_ids=False,
)
"""lmdeploy/serve/openai/protocol.py, CompletionRequest: a list as the prompt is a list of texts, ``top_k`` is 40 unless
said otherwise, and the usage does not tell cached tokens. ModelCard gives ``owned_by``; adapters are models."""
OLLAMA = Profile(name="ollama", owners=["library"], token_ids=False)
"""openai/openai.go of ollama, CompletionRequest and Usage: the prompt is one text, cached tokens are not told, nothing
of a request concerns the cache. ``owned_by`` is the namespace of a model, "library" for those of its own library."""
LLAMA_CPP_PYTHON = Profile(name="llama-cpp-python", owners=["me"], always={"repeat_penalty": 1.0}, token_ids=False)
"""llama_cpp/server/types.py of llama-cpp-python, CreateCompletionRequest: texts only, and a repeat penalty of 1.1 where
none is given. llama_cpp/server/app.py gives ``owned_by``."""
PROFILES: tuple[Profile, ...] = (
    TENSORRT_LLM,
    TENSORRT_LLM_CHAT,
    LMDEPLOY,
    OLLAMA,
    LLAMA_CPP_PYTHON,
    OPENAI_CHAT,
    OPENAI,
)
