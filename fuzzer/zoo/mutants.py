"""The planted mistakes as data: what each one is, where it was seen in public, and what it takes to show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.model import Family, ModelShape
from fuzzer.zoo.settings import Flavour, Settings


class Kind(StrEnum):
    """The kinds of stale-state bug in the taxonomy of public reports."""

    KEY_OMITS_INPUT = "K1"
    KEY_OMITS_VERSION = "K2"
    KEY_COLLIDES = "K3"
    GUARD_COMPARES_WRONG_THING = "K4"
    RESTORED_PAST_PREFIX = "K5"
    RECURRENT_STATE_MISALIGNED = "K6"
    INHERITED_STATE = "K7"
    WRONG_POSITIONS = "K8"
    IDENTITY_NOT_UPDATED = "K9"
    INVALID_PUBLISHED = "K10"
    TIERS_DISAGREE = "K11"
    OTHER_STATE_LEAKS = "K12"


class Need(StrEnum):
    """An operation or shape without which a mutant stays hidden, besides plain requests."""

    ADAPTERS = "adapters named by the request"
    GLOBAL_SCALES = "global scales changed"
    ADAPTER_RELOAD = "adapter replaced in place"
    ADAPTER_UNLOAD = "adapter unloaded and loaded"
    WEIGHTS_RELOAD = "weights reloaded"
    SALT = "cache salt"
    EVICT = "eviction"
    SAVE_RESTORE = "slot saved and restored"
    ERASE = "slot erased"
    PIN = "slot pinned"
    SLEEP = "sleep and wake"
    OVERLAP = "overlapping requests"
    ABORT = "abort"
    SAMPLING = "sampling options"
    CONTINUE = "prompt that continues an answer"
    CRAFTED = "prompts made to collide"


class Shows(StrEnum):
    ANSWER = "wrong answer"
    ACCOUNTING = "unlawful reuse"


@dataclass(frozen=True, slots=True)
class Mutant:
    """``report`` is an id of known-bugs.md; ``operations`` count the shortest sequence after its prologue."""

    bug: Bug
    kind: Kind
    report: str
    mistake: str
    operations: int
    needs: frozenset[Need] = frozenset()
    family: Family = Family.DENSE
    shows: Shows = Shows.ANSWER
    rows: int = 1
    flavour: Flavour = field(default=Flavour.LLAMA)

    @property
    def name(self) -> str:
        return self.bug.value

    def settings(self, *, planted: bool = True) -> Settings:
        """A server on which the mistake can show."""
        return Settings(
            flavour=self.flavour,
            shape=ModelShape(self.family),
            bug=self.bug if planted else None,
            rows=self.rows,
        )

    def flags(self, *, planted: bool = True) -> tuple[str, ...]:
        """The same server as arguments of ``fuzzer.zoo.serve``."""
        shape = ("--flavour", self.flavour, "--family", self.family, "--rows", str(self.rows))
        return (*shape, "--bug", self.name) if planted else shape


def needs(*kinds: Need) -> frozenset[Need]:
    return frozenset(kinds)
