"""The shapes of public reproducers as plans: what somebody would run who knows the reports, and nothing else.

P and Q are prompts that share nothing; ``a``, ``b`` adapters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle

import msgspec

from scenarios.capabilities import Capabilities
from scenarios.environment import AdapterScale
from scenarios.fitting import lacking, long_enough
from scenarios.operations import (
    Abort,
    Await,
    Complete,
    Erase,
    Evict,
    Flush,
    Join,
    Operation,
    Reload,
    ReloadWeights,
    Restore,
    Sampling,
    Save,
    SetScales,
    Sleep,
    Start,
    Unload,
)
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment
from scenarios.swarm import explicit_spellings

LENGTHS = (8, 16, 24, 32, 40, 48, 64, 14, 15, 17, 30, 31, 33, 47, 49, 63, 65, 100, 4, 2, 1)
"""Tokens of P: small ones, and ones next to usual blocks and windows."""


class Shape(msgspec.Struct, frozen=True):
    """What one public report did, or several; ``report`` says which, or what was done where several share it."""

    report: str
    scenario: str
    """Name of the scenario that stands for it."""
    plan: Callable[[int], Plan]
    """By the length of P in tokens."""
    as_spelled: bool = False
    """Whether it is about naming no adapter, which leaves the others' scales to the server."""

    def fitted(self, length: int, capabilities: Capabilities) -> Plan | None:
        """The plan for a server, prompts reaching over a cache block; None where the server cannot run it."""
        plan = long_enough(self.plan(length), capabilities.block)
        plan = plan if self.as_spelled else _spelled_out(plan, capabilities)
        return plan if lacking(plan, capabilities) is None else None


def _spelled_out(plan: Plan, capabilities: Capabilities) -> Plan:
    """The plan with every adapter named at zero where it names none and a request can set each of them."""
    off = explicit_spellings(capabilities)[0]
    operations = tuple(
        msgspec.structs.replace(operation, scales=off)
        if isinstance(operation, (Complete, Start, Evict)) and operation.scales == ()
        else operation
        for operation in plan.operations
    )
    return msgspec.structs.replace(plan, operations=operations)


def public_shapes(capabilities: Capabilities) -> Iterator[Plan]:
    """Every shape that the server can run, once at each length, over and over."""
    for length in cycle(LENGTHS):
        for shape in SHAPES:
            plan = shape.fitted(length, capabilities)
            if plan is not None:
                yield plan


def _p(length: int, *more: Segment, root: int = 0) -> Prompt:
    return Prompt(root, (Segment("a", length), *more))


def _q(length: int) -> Prompt:
    return _p(length, root=1)


def _on(a: float, b: float = 0.0) -> tuple[AdapterScale, ...]:
    return AdapterScale(0, a), AdapterScale(1, b)


_A = (AdapterScale(0, 1.0),)
_B = (AdapterScale(1, 1.0),)


def _asked(*prompts: Prompt, tokens: int = 1) -> Plan:
    return Plan(tuple(Complete(prompt=prompt, tokens=tokens) for prompt in prompts))


def _scaled(*requests: tuple[Prompt, tuple[AdapterScale, ...]]) -> Plan:
    return Plan(tuple(Complete(prompt=prompt, scales=scales) for prompt, scales in requests))


def _global(length: int) -> Plan:
    ask = Complete(prompt=_p(length), scales=None)
    return Plan((ask, SetScales(_on(0.3)), ask), (SetScales(_on(1.0)),))


def _empty_list(length: int) -> Plan:
    return Plan((Complete(prompt=_p(length), scales=()),), (SetScales(_on(1.0, 1.0)),))


def _conversation(length: int) -> Plan:
    grown = [Complete(prompt=Prompt(0, (Segment("d", 6),), after=turn, answer=2), tokens=2) for turn in range(3)]
    return Plan((Complete(prompt=_p(length), tokens=2), *grown, Complete(prompt=_p(length, Segment("e", 3)))))


def _after_answer(length: int) -> Plan:
    first = Complete(prompt=_p(length), tokens=4)
    return Plan((first, Complete(prompt=Prompt(0, (), after=0, answer=4), tokens=2)))


def _between(length: int, *operations: Operation) -> Plan:
    """P, something else, P again."""
    ask = Complete(prompt=_p(length))
    return Plan((ask, *operations, ask))


def _between_adapter(length: int, *operations: Operation) -> Plan:
    ask = Complete(prompt=_p(length), scales=_A)
    return Plan((ask, *operations, ask))


def _restored_for_another(length: int) -> Plan:
    first, second = (Complete(prompt=_p(length), scales=scales) for scales in (_on(0.0), _on(1.0)))
    return Plan((first, Save(0), second, Restore(0), second))


def _pinned(length: int) -> Plan:
    prompts = ((_p(length), 0), (_q(length), 0), (_p(length), 1))
    return Plan(tuple(Complete(prompt=prompt, slot=slot) for prompt, slot in prompts))


def _salted(length: int) -> Plan:
    return Plan(tuple(Complete(prompt=_p(length), salt=salt) for salt in ("tenant-1", "tenant-2")))


def _salt_named_as_adapter(length: int) -> Plan:
    return Plan((Complete(prompt=_p(length), scales=_A), Complete(prompt=_p(length), salt="a")))


def _aborted(length: int) -> Plan:
    return Plan((Start(prompt=_p(length), tokens=32), Abort(0), Complete(prompt=_p(length))))


def _aborted_decoding(length: int) -> Plan:
    return Plan((Start(prompt=_p(length), tokens=32), Await(0, 2), Abort(0), Complete(prompt=_q(1))))


def _side_by_side(length: int) -> Plan:
    starts = tuple(Start(prompt=_p(length + at, root=at), tokens=16) for at in range(3))
    again = tuple(Complete(prompt=_p(length, root=at)) for at in range(3))
    return Plan((*starts, *(Join(at) for at in range(3)), *again))


def _short_beside_long(length: int) -> Plan:
    """In slots, or rows, that all had an owner before."""
    before = tuple(Start(prompt=_p(length, root=2 + at), tokens=8) for at in range(2))
    after = (Start(prompt=_p(length), tokens=32), Await(4, 1), Complete(prompt=Prompt(1), tokens=4))
    return Plan((*before, Join(0), Join(1), *after))


def _biased_beside_another(length: int) -> Plan:
    """The row of the biased request moves up when the one before it ends, which has to outlast its arrival."""
    short = Start(prompt=_p(length), tokens=16)
    return Plan((short, Start(prompt=_q(length), tokens=32, sampling=Sampling.BIAS), Join(0), Join(1)))


def _sampled(sampling: Sampling) -> Callable[[int], Plan]:
    def plan(length: int) -> Plan:
        asked = Complete(prompt=_p(length), tokens=4, sampling=sampling)
        plain = [Complete(prompt=prompt, tokens=4) for prompt in (_p(length), _q(length))]
        return Plan((asked, plain[0], asked, plain[1]))

    return plan


SHAPES: tuple[Shape, ...] = (
    Shape(
        "ggml-org/llama.cpp#30129",
        "adapter-scale",
        lambda n: _scaled((_p(n), _on(0.0)), (_q(n), _on(1.0)), (_p(n), _on(1.0))),
    ),
    Shape("ggml-org/llama.cpp#26207", "adapter-scale", lambda n: _scaled((_p(n), _on(1.0)), (_p(n), _on(0.0, 1.0)))),
    Shape("one adapter after another", "adapter-scale", lambda n: _scaled((_p(n), _A), (_p(n), _B), (_p(n), ()))),
    Shape("ggml-org/llama.cpp#24411", "conversation", lambda n: _asked(_p(2 * n), _p(1, Segment("c", n)))),
    Shape("ggml-org/llama.cpp#20532", "conversation", _conversation),
    Shape("ggml-org/llama.cpp#23206", "conversation", lambda n: _asked(_p(n), _p(n), tokens=4)),
    Shape("ggml-org/llama.cpp#27931", "conversation", lambda n: _asked(_p(1, Segment("b", n)), _p(1, Segment("c", n)))),
    Shape(
        "ml-explore/mlx-lm#1494",
        "conversation",
        lambda n: _asked(_p(2 * n), _p(n, Segment("c", 3)), _p(n, Segment("c", 6))),
    ),
    Shape("ml-explore/mlx-lm#1215", "conversation", _after_answer),
    Shape("a prompt that another pushed out", "conversation", lambda n: _asked(_p(n), _q(n), _p(n))),
    Shape("LMCache/LMCache#2878", "tenant-key", _salted),
    Shape("sgl-project/sglang#24638", "tenant-key", _salt_named_as_adapter),
    Shape("ggml-org/llama.cpp#26207", "global-scale", _global),
    Shape("ggml-org/llama.cpp#28674", "adapter-spelling", _empty_list, as_spelled=True),
    Shape("ggml-org/llama.cpp#25913", "saved-slots", lambda n: _between(n, Save(0), Restore(0))),
    Shape("a slot restored for another adapter", "saved-slots", _restored_for_another),
    Shape("a slot erased", "saved-slots", lambda n: _between(n, Erase(0))),
    Shape("ggml-org/llama.cpp#28139", "pinned-slots", _pinned),
    Shape("a cache flushed", "free", lambda n: _between(n, Flush())),
    Shape("ovg-project/kvcached#362", "free", lambda n: _between(n, Evict(8, 64))),
    Shape("sgl-project/sglang#31833", "interleaving", _side_by_side),
    Shape("vllm-project/vllm#32118", "interleaving", _short_beside_long),
    Shape("sgl-project/sglang#28374", "aborts", _aborted),
    Shape("vllm-project/vllm#45357", "aborts", _aborted_decoding),
    Shape("penalties left in a row", "sampling-state", _sampled(Sampling.PENALTIES)),
    Shape("a bias left in a row", "sampling-state", _sampled(Sampling.BIAS)),
    Shape("a grammar left in a row", "sampling-state", _sampled(Sampling.GRAMMAR)),
    Shape("a bias beside another request", "sampling-state", _biased_beside_another),
    Shape("vllm-project/vllm#42125", "adapter-reload", lambda n: _between_adapter(n, Reload(0, 1))),
    Shape("an adapter unloaded and loaded", "adapter-reload", lambda n: _between_adapter(n, Unload(0))),
    Shape("InternLM/lmdeploy#4917", "weights-reload", lambda n: _between(n, ReloadWeights(1))),
    Shape("a server put to sleep", "sleeping", lambda n: _between(n, Sleep())),
)
"""Requests one after another first, and before what loads weights, after which no version is the first one any more."""
