"""Public llama-server bugs that show on wheels: how a run of the fuzzer is seen to have met each of them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from oracles.attribution import Element
from oracles.lost_reuse import Promise
from reports.record import FindingRecord, LostReuse, RunRecord
from scenarios.operations import Operation


class Sighting(msgspec.Struct, frozen=True):
    """A bug as a run met it: after how many seconds, and the minimal plan."""

    seconds: float
    plan: tuple[Operation, ...]


class PublicBug(msgspec.Struct, frozen=True, kw_only=True):
    """One public report, with wheels on which it is there and one, if any, that is clean."""

    report: str
    what: str
    tiny: str
    adapters: tuple[str, ...] | None = None
    """None: both of the model's. A slot that another adapter had meanwhile is not reused either: another bug's sign."""
    scenario: str
    affected: tuple[str, ...]
    clean: str | None = None
    seen: Callable[[RunRecord], Sighting | None]
    """The first sighting in a run's record."""


_OLD, _NEXT, _NEW = "2026.6.9538", "2026.6.9713", "2026.10.11549"
_CHANGES = {Element.SCALE_CHANGE, Element.ADAPTER_CHANGE}


def _finding(matches: Callable[[set[str]], bool]) -> Callable[[RunRecord], Sighting | None]:
    """Sees a finding by what was necessary for it."""

    def seen(record: RunRecord) -> Sighting | None:
        found = [one for one in record.findings if matches(set(one.necessary))]
        return _sighting(found[0]) if found else None

    return seen


def _lost(promise: Promise) -> Callable[[RunRecord], Sighting | None]:
    """Sees reuse that was lost although it was promised in this way."""

    def seen(record: RunRecord) -> Sighting | None:
        lost = [one for one in record.reuse_lost if one.promise == promise]
        return _lost_sighting(lost[0]) if lost else None

    return seen


def _sighting(finding: FindingRecord) -> Sighting:
    return Sighting(finding.found_s, finding.plan)


def _lost_sighting(lost: LostReuse) -> Sighting:
    return Sighting(lost.found_s or 0.0, lost.plan)


def _evicted_at_another_scale(necessary: set[str]) -> bool:
    return Element.SETTING_BETWEEN in necessary and bool(_CHANGES & necessary)


def _global_scale_changed(necessary: set[str]) -> bool:
    return Element.GLOBAL_SCALES in necessary and bool(_CHANGES & necessary)


def _empty_list(necessary: set[str]) -> bool:
    return Element.EMPTY_LIST in necessary


def _restored_past_the_prefix(necessary: set[str]) -> bool:
    return necessary == {Element.SHARED_PREFIX, Element.CUT_BACK}


PUBLIC_BUGS = (
    PublicBug(
        report="ggml-org/llama.cpp#30129",
        what="a prompt comes back from RAM with KV of another adapter scale",
        tiny="dense",
        scenario="adapter-scale",
        affected=(_OLD, _NEW),
        seen=_finding(_evicted_at_another_scale),
    ),
    PublicBug(
        report="ggml-org/llama.cpp#26207",
        what="a slot keeps its KV when the global scales change",
        tiny="dense",
        scenario="global-scale",
        affected=(_OLD, _NEW),
        seen=_finding(_global_scale_changed),
    ),
    PublicBug(
        report="ggml-org/llama.cpp#28674",
        what="an empty adapter list leaves the adapters on",
        tiny="dense",
        scenario="adapter-spelling",
        affected=(_OLD, _NEW),
        seen=_finding(_empty_list),
    ),
    PublicBug(
        report="ggml-org/llama.cpp#24411",
        what="a window checkpoint from beyond the shared prefix is restored",
        tiny="swa",
        adapters=(),
        scenario="conversation",
        affected=(_OLD,),
        clean=_NEXT,
        seen=_finding(_restored_past_the_prefix),
    ),
    PublicBug(
        report="ggml-org/llama.cpp#28139",
        what="a request pinned to an empty slot is not looked up",
        tiny="dense",
        scenario="pinned-slots",
        affected=(_OLD, _NEW),
        seen=_lost(Promise.PINNED),
    ),
    PublicBug(
        report="ggml-org/llama.cpp#25913, #26676",
        what="a restored slot of a windowed model is not reused",
        tiny="swa",
        adapters=(),
        scenario="saved-slots",
        affected=(_OLD,),
        clean=_NEW,
        seen=_lost(Promise.RESTORED),
    ),
)
