"""Hypothesis strategies: plans within a profile.

Every draw costs time that the servers spend idle, so an operation is one draw from the menu of all that the profile
and what is in flight allow, not one draw for each of its fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from scenarios.operations import (
    Abort,
    Await,
    Complete,
    Erase,
    Evict,
    Flush,
    Join,
    Operation,
    Other,
    Reload,
    ReloadWeights,
    Restart,
    Restore,
    Sampling,
    Save,
    SetScales,
    Sleep,
    Start,
    Task,
    Unload,
)
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment
from scenarios.swarm import Profile, Spelling

T = TypeVar("T")


def plans(profile: Profile) -> st.SearchStrategy[Plan]:
    """Plans over a small tree of prompts, so that prefixes are shared, forked, grown and asked again."""
    trees = _trees(profile.lengths)

    @st.composite
    def draw_plan(draw: st.DrawFn) -> Plan:
        shapes = [draw(st.sampled_from(trees)) for _ in range(profile.roots)]
        branches = 5 if profile.cut_backs else 2
        prompts = [prompt for root, shape in enumerate(shapes) for prompt in tree(root, *shape)[:branches]]
        prompts += [Prompt(root) for root in range(profile.roots)] if profile.bare else []
        variants = [sampling for sampling in profile.samplings if sampling is not Sampling.PLAIN]
        variant = (draw(st.sampled_from(variants)),) if variants else ()
        drawing = _Drawing(msgspec.structs.replace(profile, samplings=(Sampling.PLAIN, *variant)), prompts)
        opening = draw(st.sampled_from(profile.openings)) if len(profile.openings) > 1 else profile.openings[0]
        for kind in opening:
            drawing.add(kind, draw(st.integers(0, 2**20)), related=True)
        for _ in range(draw(st.integers(*_further(profile.most, len(opening))))):
            drawing.add(draw(st.sampled_from(drawing.kinds())), draw(st.integers(0, 2**20)))
        return drawing.plan()

    return draw_plan()


def _further(most: int, opened: int) -> tuple[int, int]:
    """How many operations may follow an opening, least and most."""
    return (0, max(0, most - opened)) if opened else (2, most)


def _trees(lengths: Sequence[int]) -> list[tuple[int, int, int]]:
    """Trunks, branches, and where the second branch leaves its trunk: a branch before the end, or at a length too."""
    pairs = list(product(lengths, lengths))
    forks = [{max(1, trunk - branch), *(fork for fork in lengths if fork < trunk)} for trunk, branch in pairs]
    return [(*pair, fork) for pair, at in zip(pairs, forks, strict=True) for fork in sorted(at)]


def tree(root: int, trunk: int, branch: int, fork: int) -> list[Prompt]:
    """A trunk, a branch from its end, one from within, the trunk with its middle left out, and a branch of a branch."""
    return [
        Prompt(root, (Segment("a", trunk),)),
        Prompt(root, (Segment("a", trunk), Segment("b", branch))),
        Prompt(root, (Segment("a", fork), Segment("c", branch))),
        Prompt(root, (Segment("a", fork), Segment("b", branch))),
        Prompt(root, (Segment("a", fork), Segment("c", max(1, branch * 3 // 4)), Segment("d", branch))),
    ]


class _Drawing:
    """A plan as it is drawn: what is in flight, what was saved, which requests have answers to go on after."""

    def __init__(self, profile: Profile, prompts: list[Prompt]) -> None:
        self._profile = profile
        self._prompts = prompts
        self._operations: list[Operation] = []
        self._flying: list[int] = []
        self._answered: list[int] = []
        self._saved: list[int] = []
        self._prompts_asked: list[Prompt] = []
        self._longest: dict[int, int] = {}
        self._related = False
        self._sampled_last: Sampling | None = None
        self._versions: dict[int, int] = {}

    def kinds(self) -> list[str]:
        """Kinds of operations that make sense now."""
        useless = set() if self._flying else {"await", "join", "abort"}
        useless |= set() if self._saved else {"restore"}
        useless |= set() if self._answered else {"grow"}
        return [kind for kind in self._profile.kinds if kind not in useless] or ["complete"]

    def add(self, kind: str, number: int, *, related: bool = False) -> None:
        """Add an operation of a kind; ``number`` chooses among all of that kind.

        What is ``related`` is more often than not of a root that was asked before, and samples in another way.
        """
        self._related = related
        operation = self._operation(kind, _Choice(number))
        at = len(self._operations)
        if isinstance(operation, (Complete, Start)):
            self._sampled_last = operation.sampling
            self._prompts_asked += [operation.prompt] if operation.prompt.after is None else []
            self._longest[operation.prompt.root] = max(
                self._longest.get(operation.prompt.root, 0), operation.prompt.length
            )
        if isinstance(operation, Start):
            self._flying.append(at)
        if isinstance(operation, (Join, Abort)):
            self._flying.remove(operation.of)
        if isinstance(operation, Complete):
            self._answered.append(at)
        if isinstance(operation, Save):
            self._saved.append(operation.file)
        self._operations.append(operation)
        if isinstance(operation, Restart) and self._profile.global_scales:
            self._operations.append(SetScales(self._profile.global_scales[0]))

    def plan(self) -> Plan:
        """The plan, with a prologue where requests rely on global scales."""
        if self._profile.global_scales and any(request.scales is None for request in self._requests()):
            return Plan(tuple(self._operations), (SetScales(self._profile.global_scales[0]),))
        return Plan(tuple(self._operations))

    def _requests(self) -> list[Complete | Start]:
        return [operation for operation in self._operations if isinstance(operation, (Complete, Start))]

    def _operation(self, kind: str, choose: _Choice) -> Operation:
        match kind:
            case "start":
                return self._start(choose, (*self._profile.answers, *self._profile.lasting))
            case "brief":
                return self._start(choose, self._profile.answers)
            case "lasting":
                return self._start(choose, self._profile.lasting)
            case "grow":
                return self._grow(choose)
            case "await":
                return Await(choose.of(self._flying), choose.of((1, 2, 4, 8)))
            case "join":
                return Join(choose.of(self._flying))
            case "abort":
                return Abort(choose.of(self._flying))
            case "complete":
                return self._complete(choose)
        return self._administration(kind, choose)

    def _complete(self, choose: _Choice) -> Complete:
        profile = self._profile
        request = Complete(
            prompt=choose.of((*self._askable(), *self._asked, *self._kin())),
            scales=choose.of(profile.spellings),
            tokens=choose.of(profile.answers),
        )
        return self._varied(request, choose)

    @property
    def _asked(self) -> list[Prompt]:
        """What was asked before, which is worth asking again: twice as likely, where it may be."""
        return list(dict.fromkeys(self._prompts_asked)) if self._profile.cut_backs else []

    def _kin(self) -> list[Prompt]:
        """Prompts on the roots of those that were asked, once more where they are to be related."""
        roots = {prompt.root for prompt in self._prompts_asked} if self._related else set()
        return [prompt for prompt in self._askable() if prompt.root in roots] * 2

    def _askable(self) -> list[Prompt]:
        """Prompts that may be asked next; all of them, unless they may only go on from what was asked."""
        if self._profile.cut_backs:
            return self._prompts
        longer = [prompt for prompt in self._prompts if prompt.length > self._longest.get(prompt.root, 0)]
        return longer or self._prompts

    def _varied(self, request: Complete, choose: _Choice) -> Complete:
        profile = self._profile
        if profile.slots:
            request = msgspec.structs.replace(request, slot=choose.of((None, *profile.slots)))
        if len(profile.samplings) > 1:
            request = msgspec.structs.replace(request, sampling=choose.of((*profile.samplings, *self._unlike_last())))
        if len(profile.salts) > 1:
            request = msgspec.structs.replace(request, salt=choose.of(self._salts(request.scales)))
        return request

    def _salts(self, scales: Spelling) -> list[str]:
        """Tenant keys; those that were not asked under with these scales, where requests are to be related."""
        salts = self._profile.salts
        asked = {request.salt for request in self._requests() if request.scales == scales} if self._related else set()
        return [salt for salt in salts if salt not in asked] or list(salts)

    def _unlike_last(self) -> list[Sampling]:
        """Ways to sample other than the last request's, once more where requests are to be related."""
        if not self._related or self._sampled_last is None:
            return []
        return [sampling for sampling in self._profile.samplings if sampling is not self._sampled_last] * 2

    def _start(self, choose: _Choice, lengths: Sequence[int]) -> Start:
        request = self._complete(choose)
        return Start(
            prompt=request.prompt,
            scales=request.scales,
            tokens=choose.of(lengths),
            slot=request.slot,
            sampling=request.sampling,
            salt=request.salt,
        )

    def _grow(self, choose: _Choice) -> Complete:
        """Go on after an earlier answer, or after the first part of it; sometimes with nothing added."""
        after = choose.of(self._answered)
        earlier = self._operations[after]
        assert isinstance(earlier, Complete)
        answer = choose.of((earlier.tokens, earlier.tokens, max(0, earlier.tokens - 1), 0))
        added = choose.of(((), (Segment("d", choose.of(self._profile.lengths)),), (Segment("e", 1),)))
        request = self._complete(choose)
        prompt = Prompt(earlier.prompt.root, added, after, answer)
        return msgspec.structs.replace(request, prompt=prompt)

    def _administration(self, kind: str, choose: _Choice) -> Operation:
        profile = self._profile
        slot = choose.of(profile.slots or (0,))
        match kind:
            case "set_scales":
                return SetScales(choose.of(profile.global_scales))
            case "evict":
                return Evict(*choose.of(profile.evictions), choose.of(profile.spellings))
            case "save":
                return Save(slot, choose.below(2))
            case "restore":
                return Restore(slot, choose.of(self._saved))
            case "erase":
                return Erase(slot)
            case "other":
                return Other(Task(choose.of(profile.tasks)))
        return self._loading(kind, choose)

    def _loading(self, kind: str, choose: _Choice) -> Operation:
        match kind:
            case "reload":
                return Reload(*self._version(choose))
            case "unload":
                return Unload(*self._version(choose))
            case "reload_weights":
                return ReloadWeights(choose.below(self._profile.versions))
            case "sleep":
                return Sleep()
            case "restart":
                return Restart()
            case "flush":
                return Flush()
        raise ValueError(f"no operation of kind {kind!r}")

    def _version(self, choose: _Choice) -> tuple[int, int]:
        """An adapter that requests use, and weights for it, mostly others than it has now."""
        adapter = choose.of(_adapters_on(self._profile.spellings) or [0])
        others = [version for version in range(self._profile.versions) if version != self._versions.get(adapter, 0)]
        self._versions[adapter] = choose.of((*range(self._profile.versions), *others, *others))
        return adapter, self._versions[adapter]


def _adapters_on(spellings: Sequence[Spelling]) -> list[int]:
    return sorted({scale.adapter for spelling in spellings for scale in spelling or () if scale.scale})


class _Choice:
    """Many small choices from one number."""

    def __init__(self, number: int) -> None:
        self._number = number

    def below(self, count: int) -> int:
        """A number from 0 to ``count`` - 1."""
        self._number, chosen = divmod(self._number * 2654435761 + 12345, max(1, count))
        self._number &= 0xFFFFFFFF
        return chosen

    def of(self, options: Sequence[T]) -> T:
        """One of ``options``."""
        return options[self.below(len(options))]
