"""Profiles: how servers behind OpenAI-style completion routes differ, as data. A user can write one without code.

Whatever a profile leaves open is found out by asking: whether prompts may be token ids, which logprobs come back,
whether cached tokens are told.
"""

from __future__ import annotations

from typing import Any

import msgspec

FRESH = "{fresh}"
"""Stands for a value that nobody has used before."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of server."""

    name: str
    server: str = ""
    """What people call it, where that is not the name."""
    route: str = "/v1/completions"
    owners: tuple[str, ...] = ()
    """``owned_by`` of its models, by which it is recognised."""
    always: dict[str, Any] = {}
    """Fields of every request."""
    bypass: dict[str, Any] | None = None
    """Fields that make a request skip the cache; None where there are none."""
    salt: str | None = None
    """The field of a request that holds its tenant key."""
    adapter_models: bool = False
    """Whether an adapter is asked for by naming it as the model."""
    token_ids: bool = True
    """Whether prompts of token ids are worth trying."""
    flush: str | None = None
    """A route that makes it forget every cached prefix."""


OPENAI = Profile(name="openai", server="an OpenAI-compatible server", adapter_models=True)
PROFILES: tuple[Profile, ...] = (
    Profile(
        name="tensorrt-llm",
        server="trtllm-serve",
        owners=("tensorrt_llm",),
        # tensorrt_llm/serve/openai_protocol.py: unknown fields are refused, a cache salt on this route too.
        always={"ignore_eos": True},
    ),
    Profile(
        name="lmdeploy",
        owners=("lmdeploy",),
        # lmdeploy/serve/openai/protocol.py; adapters are models of their own there.
        always={"ignore_eos": True, "top_k": 1},
        adapter_models=True,
        token_ids=False,
    ),
    Profile(name="ollama", owners=("library",), token_ids=False),
    Profile(name="llama-cpp-python", owners=("me",)),
    OPENAI,
)
