"""The shapes of public reproducers as plans: what a script would run that knows the reports, and nothing else.

P and Q are prompts that share nothing; ``a``, ``b`` adapters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle

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

_LENGTHS = (8, 16, 24, 32, 40, 48, 64, 15, 17, 31, 33, 47, 49, 63, 65, 100, 4, 2, 1)
"""Tokens of P: small ones, and ones next to usual blocks and windows."""

Shape = Callable[[int], Plan]
"""A plan by the length of its prompt."""


def public_shapes(capabilities: Capabilities) -> Iterator[Plan]:
    """Every shape that the server can run, once at each length, over and over."""
    for length in cycle(_LENGTHS):
        for shape in SHAPES.values():
            plan = long_enough(shape(length), capabilities.block)
            if lacking(plan, capabilities) is None:
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
    return Plan((Start(prompt=_p(length), tokens=32), Await(0, 1), Complete(prompt=Prompt(1), tokens=4)))


def _sampled(sampling: Sampling) -> Shape:
    def shape(length: int) -> Plan:
        asked = Complete(prompt=_p(length), tokens=4, sampling=sampling)
        return Plan((asked, Complete(prompt=_q(length), tokens=4)))

    return shape


SHAPES: dict[str, Shape] = {
    "ggml-org/llama.cpp#30129": lambda n: _scaled((_p(n), _on(0.0)), (_q(n), _on(1.0)), (_p(n), _on(1.0))),
    "ggml-org/llama.cpp#26207": lambda n: _scaled((_p(n), _on(1.0)), (_p(n), _on(0.0, 1.0))),
    "ggml-org/llama.cpp#26207, global scales": _global,
    "ggml-org/llama.cpp#28674": _empty_list,
    "ggml-org/llama.cpp#24411": lambda n: _asked(_p(2 * n), _p(1, Segment("c", n))),
    "ggml-org/llama.cpp#20532": _conversation,
    "ggml-org/llama.cpp#23206": lambda n: _asked(_p(n), _p(n), tokens=4),
    "ggml-org/llama.cpp#27931": lambda n: _asked(_p(1, Segment("b", n)), _p(1, Segment("c", n))),
    "ggml-org/llama.cpp#25913": lambda n: _between(n, Save(0), Restore(0)),
    "a slot restored for another adapter": _restored_for_another,
    "ggml-org/llama.cpp#28139": _pinned,
    "ggml-org/llama.cpp#27148": lambda n: _between(n, Erase(0)),
    "ml-explore/mlx-lm#1494": lambda n: _asked(_p(2 * n), _p(n, Segment("c", 3)), _p(n, Segment("c", 6))),
    "ml-explore/mlx-lm#1215": _after_answer,
    "vllm-project/vllm#42125": lambda n: _between_adapter(n, Reload(0, 1)),
    "an adapter unloaded and loaded": lambda n: _between_adapter(n, Unload(0)),
    "one adapter after another": lambda n: _scaled((_p(n), _A), (_p(n), _B), (_p(n), ())),
    "InternLM/lmdeploy#4917": lambda n: _between(n, ReloadWeights(1)),
    "a server put to sleep": lambda n: _between(n, Sleep()),
    "a cache flushed": lambda n: _between(n, Flush()),
    "LMCache/LMCache#2878": _salted,
    "sgl-project/sglang#24638": _salt_named_as_adapter,
    "sgl-project/sglang#28374": _aborted,
    "vllm-project/vllm#45357": _aborted_decoding,
    "sgl-project/sglang#31833": _side_by_side,
    "vllm-project/vllm#32118": _short_beside_long,
    "ovg-project/kvcached#362": lambda n: _between(n, Evict(8, 64)),
    "penalties left in a row": _sampled(Sampling.PENALTIES),
    "a bias left in a row": _sampled(Sampling.BIAS),
    "a grammar left in a row": _sampled(Sampling.GRAMMAR),
}
"""By public report, or by what is done where several reports share it."""
