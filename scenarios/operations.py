"""Operations: each one thing done to a server, as data.

An operation that speaks of an earlier one names it by its index in the plan. Whatever is done with plans keeps these
indexes right: see ``scenarios.plans``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Union, get_args

import msgspec

from scenarios.environment import AdapterScale, adapter_letter
from scenarios.prompts import Prompt


class Sampling(StrEnum):
    """How a token is chosen from the logits; each of these keeps state for its request that must not outlive it."""

    PLAIN = "plain"
    PENALTIES = "penalties"
    BIAS = "bias"
    GRAMMAR = "grammar"
    SEEDED = "seeded"
    """Not greedy: its tokens are compared with nothing, but it leaves its traces."""


class Ask(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a request asks; the fields that ``complete`` and ``start`` share."""

    prompt: Prompt
    scales: tuple[AdapterScale, ...] | None = ()
    """Adapter scales as the request names them; None: the field is left out, empty: an empty list."""
    tokens: int = 1
    slot: int | None = None
    """The slot that the request is pinned to."""
    sampling: Sampling = Sampling.PLAIN
    salt: str = ""
    """Tenant key: caches must not be shared across it."""


class Complete(Ask, frozen=True, tag="complete", tag_field="op"):
    """A completion, sent and awaited."""


class Start(Ask, frozen=True, tag="start", tag_field="op"):
    """A completion that is sent and goes on beside the operations that follow, at the latest to the plan's end."""


class Await(msgspec.Struct, frozen=True, tag="await", tag_field="op"):
    """Wait until the request started at step ``of`` has produced ``tokens`` tokens."""

    of: int
    tokens: int = 1


class Join(msgspec.Struct, frozen=True, tag="join", tag_field="op"):
    """Wait until the request started at step ``of`` is done."""

    of: int


class Abort(msgspec.Struct, frozen=True, tag="abort", tag_field="op"):
    """Close the connection of the request started at step ``of``."""

    of: int


class SetScales(msgspec.Struct, frozen=True, tag="set_scales", tag_field="op"):
    """Set the global adapter scales, which hold for requests that leave the field out."""

    scales: tuple[AdapterScale, ...]


class Reload(msgspec.Struct, frozen=True, tag="reload", tag_field="op"):
    """Load other weights under the name of ``adapter``; ``version`` says which."""

    adapter: int
    version: int


class Unload(msgspec.Struct, frozen=True, tag="unload", tag_field="op", omit_defaults=True):
    """Unload ``adapter``, then load ``version`` of it under its name; without one, the first."""

    adapter: int
    version: int = 0


class Evict(msgspec.Struct, frozen=True, tag="evict", tag_field="op", omit_defaults=True):
    """Push entries out with ``requests`` filler prompts of ``length`` tokens that share nothing with any other."""

    requests: int = 1
    length: int = 16
    scales: tuple[AdapterScale, ...] | None = ()


class Flush(msgspec.Struct, frozen=True, tag="flush", tag_field="op"):
    """Have the server forget every cached prefix."""


class Save(msgspec.Struct, frozen=True, tag="save", tag_field="op"):
    """Save a slot's state under the name ``file``."""

    slot: int
    file: int = 0


class Restore(msgspec.Struct, frozen=True, tag="restore", tag_field="op"):
    """Restore a slot's state from ``file``; does nothing where that was not saved."""

    slot: int
    file: int = 0


class Erase(msgspec.Struct, frozen=True, tag="erase", tag_field="op"):
    """Erase a slot's state."""

    slot: int


class Sleep(msgspec.Struct, frozen=True, tag="sleep", tag_field="op"):
    """Put the server to sleep, which frees its memory, and wake it up."""


class Restart(msgspec.Struct, frozen=True, tag="restart", tag_field="op"):
    """End the server once its requests are answered, and start it again on the same files."""


class ReloadWeights(msgspec.Struct, frozen=True, tag="reload_weights", tag_field="op"):
    """Have the server load its model's weights again, or version ``version`` of them."""

    version: int = 0


class Task(StrEnum):
    """Other work that a server does beside completions."""

    TOKENIZE = "tokenize"
    EMBEDDING = "embedding"
    CHAT = "chat"


class Other(msgspec.Struct, frozen=True, tag="other", tag_field="op"):
    """A task of another kind in between; its answer is not judged."""

    task: Task = Task.TOKENIZE


Operation = Union[  # noqa: UP007 - its members are listed at run time
    Complete,
    Start,
    Await,
    Join,
    Abort,
    SetScales,
    Reload,
    Unload,
    Evict,
    Flush,
    Save,
    Restore,
    Erase,
    Sleep,
    Restart,
    ReloadWeights,
    Other,
]
Request = Complete | Start
"""Operations that get an answer which is judged."""
Reference = Await | Join | Abort
"""Operations that speak of a request started earlier."""

KINDS: tuple[str, ...] = tuple(str(member.__struct_config__.tag) for member in get_args(Operation))


def kind(operation: Operation) -> str:
    """The name of the operation's kind, as in plan files and in coverage tables."""
    return str(operation.__struct_config__.tag)


def scales_in_words(scales: tuple[AdapterScale, ...] | None) -> str:
    """``a=0.5`` or ``a=0.5 b=1``; ``a=0`` where adapters are named and all are off; empty where none is named."""
    if scales is None:
        return "scales left out"
    if not scales:
        return ""
    on = [f"{adapter_letter(scale.adapter)}={scale.scale:g}" for scale in scales if scale.scale != 0]
    return " ".join(on) if on else f"{adapter_letter(scales[0].adapter)}=0"
