"""Capabilities: what a server lets us ask and see, as data; strategies draw only what they allow."""

from __future__ import annotations

import msgspec

from scenarios.operations import Sampling, Task
from scenarios.prompts import TokenSpace

LASTING = 48
"""Tokens of an answer that others are to run beside: a tiny llama.cpp model decodes one in a tenth of a millisecond."""
LASTING_IN_PYTHON = 32
"""The same of a server whose steps are driven by Python: a token takes a millisecond at least."""


class ModelShape(msgspec.Struct, frozen=True):
    """What a launcher knows of its model and a server may not tell."""

    window: int | None = None
    recurrent: bool = False
    lasting: int = LASTING


class Capabilities(msgspec.Struct, frozen=True):
    """Stated by a server adapter for one live server."""

    space: TokenSpace
    """Token ids for prompts; also how many fresh roots the server has in its life."""
    context: int
    """Most tokens that prompt and answer of one request may have together."""
    operations: tuple[str, ...] = ("complete",)
    """Kinds of operations that the server can do."""
    slow: tuple[str, ...] = ()
    """Those of them that take a second or more."""
    tasks: tuple[Task, ...] = ()
    """Other kinds of work that it does."""
    samplings: tuple[Sampling, ...] = (Sampling.PLAIN,)
    top_logprobs: int = 0
    """Length of the top-k list asked for at each position; 0: no logprobs."""
    adapters: int = 0
    request_scales: bool = False
    """A request may name each adapter's scale."""
    adapter_names: bool = False
    """A request may name one adapter, which is then fully on."""
    cached_counts: bool = False
    approximate_reuse: bool = False
    """The server was told to reuse what only resembles a prefix; its answers are then approximate by design."""
    whole_entries: bool = False
    """What an earlier request left is reused whole or not at all: the model's state cannot be cut back."""
    bypass: bool = False
    """A request can be made not to read the cache."""
    bypass_how: str = ""
    """How, in the server's own words."""
    salts: bool = False
    pins: bool = False
    """A request may name its slot."""
    slots: int = 1
    block: int = 1
    """Tokens that are reused together or not at all."""
    cache_tokens: int | None = None
    """Tokens that the cache can hold, over all requests, where the server tells."""
    chunk: int | None = None
    """Prompt tokens computed in one step, where longer prompts are split."""
    window: int | None = None
    """Tokens that a sliding-window layer sees."""
    recurrent: bool = False
    lasting: int = LASTING
    """Tokens of an answer that takes long enough for others to be asked beside it."""


def lengths_that_matter(capabilities: Capabilities) -> tuple[int, ...]:
    """Prompt lengths at and next to the target's own sizes, smallest first."""
    blocks = (capabilities.block, 2 * capabilities.block) if capabilities.block > 1 else ()
    sizes = [*blocks, *(size for size in (capabilities.chunk, capabilities.window) if size is not None)]
    around = {size + step for size in sizes for step in (-1, 0, 1)}
    limit = capabilities.context // 2
    return tuple(sorted(length for length in around if 1 <= length <= limit))
