"""The record of a run and of a finding: what run.json and findings/<id>.json hold, as written down in the contract."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from oracles.divergence import JensenShannon
from oracles.evidence import Arm, Repeats, Verdict
from oracles.noise import Bound
from oracles.observations import Span
from scenarios.capabilities import Capabilities
from scenarios.operations import Operation

SCHEMA = 1
"""Version of both formats; a finding of another version is not read."""


class TargetRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The server under test: attached to at ``url``, or started with ``launch``."""

    engine: str
    version: str
    capabilities: Capabilities
    url: str | None = None
    launch: str | None = None


class ReferenceRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where right answers came from."""

    mode: str
    engine: str
    version: str
    url: str | None = None
    launch: str | None = None


class Requests(msgspec.Struct, frozen=True):
    """Requests sent while exploring and in triage."""

    target: int = 0
    reference: int = 0


class Reuse(msgspec.Struct, frozen=True):
    """Requests that the target says it answered with reused tokens, and how many of those."""

    hits: int = 0
    tokens: int = 0


class Settings(msgspec.Struct, frozen=True):
    """What a finding was made with; enough to set up the same server, and nothing that a reader has to trust."""

    engine: str
    version: str
    flags: list[str]
    model: str
    adapters: list[str]
    numerics: str
    embedded: dict[str, tuple[str, Any]] = {}
    """Flag to field and value in llama.cpp's own settings structure, for a reproducer on the xllamacpp wheel."""
    start: list[str] = []
    """The command that starts an engine other than llama.cpp; {MODEL} and the like stand for files of the reader's."""


class SourceRecord(msgspec.Struct, frozen=True):
    """The step, counted from 1, whose state the wrong answer was built on."""

    step: int
    scales: dict[str, float]


class Mitigation(msgspec.Struct, frozen=True):
    """A setting and whether the plan is clean with it."""

    setting: str
    clean: bool


class Token(msgspec.Struct, frozen=True):
    """One entry of a top-k list."""

    id: int
    logprob: float


class Divergence(msgspec.Struct, frozen=True):
    """The first wrong position of the answer: what both servers held likely, likeliest first."""

    position: int
    target: list[Token]
    reference: list[Token]
    gap: float | None = None
    """By how many nats the reference prefers its own token to the target's."""
    lead: float | None = None
    """By how many nats the reference prefers its likeliest token to the next: how near a tie it is."""
    jensen_shannon: JensenShannon | None = None


class AnswerToken(msgspec.Struct, frozen=True):
    """One position of an answer; the reference answers no further than to the first token that differs."""

    target: int | None
    reference: int | None = None
    delta: float | None = None
    """Largest |delta logprob|, in nats; None where it was not compared."""


class AblationRecord(msgspec.Struct, frozen=True):
    """One element of the minimal plan taken away: the element is necessary where that made the answer right."""

    element: str
    clean: bool


class Wire(StrEnum):
    """What a line of a reproducer does."""

    SEND = "send"
    START = "start"
    """Send, and go on while the answer comes token by token."""
    AWAIT = "await"
    JOIN = "join"
    ABORT = "abort"
    UNTIL = "until"
    """Ask with GET until the answer has a field true."""
    RESTART = "restart"
    """End the server and start it again on the same files."""
    PUT = "put"
    """Put a file in the place of one that the server was started with."""


class WireRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One HTTP request of the minimal plan, as it went over the wire to a fresh server, or what is done to one."""

    step: int
    path: str = ""
    body: Any = None
    sets: bool = False
    """It sets what the wrong request relies on, so the request alone needs it too."""
    does: Wire = Wire.SEND
    of: int = 0
    """Step of the started request that is awaited, joined or aborted."""
    tokens: int = 0
    """How many of them are awaited."""
    field: str = ""
    """What an answer to GET has to have true."""
    place: str = ""
    """The variable of the file whose place is taken, as ``default_files`` calls it."""
    file: str = ""
    """That of the file which takes it."""
    remedies: str = ""
    """It is sent only where the one before was refused with these words in the answer, and makes up for that."""
    refused: bool = False
    """The server refused it in the run, which went on all the same."""


class Original(msgspec.Struct, frozen=True):
    """The plan that first diverged, in words, before it was reduced."""

    story: list[str]
    wrong: int
    answer: list[AnswerToken]


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """Totals of a run at ``at`` seconds; a run keeps a bounded number of them."""

    at: float
    steps: int
    requests: int
    hits: int
    reused_tokens: int


class StepRecord(msgspec.Struct, frozen=True):
    """What the target said about one operation of the minimal plan."""

    reused: int | None
    computed: int | None
    prompt: int
    """Tokens of the prompt."""
    tokens: list[int]
    """The answer."""
    slot: int | None = None
    ms: float | None = None
    """What the server says the request took to compute."""
    error: str | None = None
    span: Span | None = None
    """When it was sent, gave its first token and ended, as counts of the plan's events."""


class FindingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One finding. ``plan`` replays; the rest says how sure it is and why it happens."""

    schema: int = SCHEMA
    id: str
    title: str
    kind: str
    oracle: str
    known: bool = False
    known_reason: str = ""
    """Why the baseline lists it."""
    scenario: str
    prologue: tuple[Operation, ...] = ()
    plan: tuple[Operation, ...]
    operations: int
    wrong: int
    """The step, counted from 1, that was answered wrongly."""
    story: list[str]
    explanation: list[str]
    steps: list[StepRecord]
    divergence: Divergence | None
    settings: Settings
    reproduced: Repeats
    alone: Arm
    control: Arm
    bypass: Arm | None
    reuse_witnessed: bool
    max_abs_logprob_delta: float | None
    bound: float | None
    necessary: list[str]
    stale_source: SourceRecord | None
    mitigations: list[Mitigation]
    minimal: bool
    """False where time ran out before nothing more could be taken from the plan."""
    original: tuple[Operation, ...]
    found_s: float
    seed: int
    respelled: Arm | None = None
    """The request alone with every adapter named; where the request alone is wrong too."""
    severity: str = ""
    reducing_requests: int | None = None
    """Requests to the target that reducing the plan took."""
    situation: str = ""
    """The class of noise that the wrong answer was held to."""
    suspected_s: float | None = None
    """When it first diverged; until ``found_s`` it was reduced and confirmed."""
    answer: list[AnswerToken] = []
    """The wrong answer of the minimal plan beside the right one."""
    unreduced: Original | None = None
    ablations: list[AblationRecord] = []
    wire: list[WireRequest] = []
    """Up to the wrong request, or all where requests overlap; empty where no script can do it."""
    no_wire: str = ""
    """Why none can."""
    wire_alone: WireRequest | None = None
    """The wrong request, told not to read the cache; with every adapter named, where that is what makes it right."""
    reused: int | None = None
    """Prompt tokens that the server says it reused for the wrong request."""
    reusable: int | None = None
    """The most that it could lawfully reuse, where more is what is wrong."""
    token_texts: dict[str, str] = {}
    """Text of the tokens that this record names, as the server spells them; untrusted."""


class SuspectRecord(msgspec.Struct, frozen=True):
    """A divergence that did not become a finding, and why."""

    oracle: str
    step: int
    delta: float | None
    bound: float | None
    reason: str
    plan: tuple[Operation, ...]
    story: list[str]


class CellRecord(msgspec.Struct, frozen=True):
    """One target with one combination of a matrix; its own record is in the folder of its name."""

    name: str
    verdict: str
    steps: int
    findings: list[str]
    """Ids."""
    target: str = ""
    model: str = ""
    flags: str = ""


class LostReuse(msgspec.Struct):
    """A hit that had to come and did not: not wrong, but the same bookkeeping."""

    step: int
    tokens: int
    """Prompt tokens that could have been reused."""
    story: list[str]
    times: int = 1
    """How often reuse was lost in this way in the run; plan and story are the first one's, reduced."""
    promise: str = ""
    """Why the hit had to come."""
    prologue: tuple[Operation, ...] = ()
    plan: tuple[Operation, ...] = ()
    settings: list[str] = []
    """Flags of the server beyond those of the run's settings."""
    wire: list[WireRequest] = []
    """What to send to see it; empty where that cannot be said in plain requests."""
    found_s: float | None = None


class OthersRecord(msgspec.Struct, frozen=True):
    """What others did to the target meanwhile, as far as its own counters and settings tell."""

    told_by: str = ""
    """Where requests of others show; empty where they do not."""
    requests: int = 0
    """In how many looks there were some."""
    work: int = 0
    unit: str = ""
    """``work`` is at least what they asked for, 0 where only that they asked is known."""
    changes: dict[str, int] = {}
    """What was set to something else, and how often that was seen."""
    earlier: int = 0
    """Hits on prompts that this run had not asked."""


class RoundingRecord(msgspec.Struct, frozen=True):
    """Differences beyond the bound that turned out to be rounding: what a run may not have seen, it says here."""

    suspects: int = 0
    largest: float = 0.0
    """The largest |delta logprob| among them, in nats."""


class RunRecord(msgspec.Struct, kw_only=True):
    """run.json."""

    schema: int = SCHEMA
    verdict: Verdict = Verdict.INCONCLUSIVE
    reasons: list[str] = []
    seed: int = 0
    elapsed_s: float = 0.0
    numerics: str = ""
    scenarios: list[str] = []
    target: TargetRecord | None = None
    reference: ReferenceRecord | None = None
    settings: Settings | None = None
    noise: list[Bound] = []
    noise_measured: str = ""
    """The day on which the bounds were measured, where they were kept from an earlier command."""
    steps: int = 0
    requests: Requests = Requests()
    reuse: Reuse = Reuse()
    exercised: dict[str, int] = {}
    not_exercised: dict[str, str] = {}
    time_to_first_finding_s: float | None = None
    coverage: dict[str, dict[str, int]] = {}
    """Operation by situation: how often each was exercised in it."""
    series: list[Sample] = []
    others: OthersRecord | None = None
    """None for a target that was launched for the run, which nobody else knows of."""
    redacted: bool = False
    matrix: list[CellRecord] = []
    """Of a run over several targets or settings; counts and findings are those of all of them."""
    resumed: int = 0
    """How often the run was gone on with; each time with other plans."""
    baseline_fixed: list[str] = []
    """Known findings that were replayed and no longer reproduce."""
    baseline_unseen: list[str] = []
    """Known findings that this run neither replayed nor met."""
    suspects: list[SuspectRecord] = []
    reuse_lost: list[LostReuse] = []
    rounding: RoundingRecord = RoundingRecord()
    findings: list[FindingRecord] = []


class FindingHeader(msgspec.Struct, frozen=True):
    """The part of a finding file that is read before anything else of it."""

    schema: int
    id: str
