"""Records larger or nastier than any real run's, grown from a real one."""

from __future__ import annotations

import random

import msgspec

from reports.happenings import MOST, Happening, Happenings
from reports.record import AnswerToken, FindingRecord, LostReuse, Original, RunRecord, Sample
from reports.series import thinned

KINDS = ("key-omits-input", "guard-compares-wrong-thing", "inherited-state", "stale-reuse")
NASTY = "<script>window.planted=1</script><img src=x onerror=window.planted=1>\"'`${1}</pre></style>\u202e\x1b[31m"
"""What a model or a server might say."""


def large(record: RunRecord, *, findings: int = 50, steps: int = 100_000) -> RunRecord:
    """A run of many steps with many findings, each of them long."""
    rng = random.Random(5)
    first = record.findings[0]
    series: list[Sample] = []
    for step in range(0, steps, 20):
        thinned(series, Sample(step / 50, step, step, int(step * 0.4), step * 9))
    return msgspec.structs.replace(
        record,
        steps=steps,
        elapsed_s=steps / 50,
        series=series,
        findings=[grown(first, number, rng) for number in range(findings)],
    )


def grown(finding: FindingRecord, number: int, rng: random.Random) -> FindingRecord:
    """Another finding of the same shape, with a long answer and a long original plan."""
    answer = [AnswerToken(rng.randrange(2048), rng.randrange(2048), rng.random() * 8) for _ in range(256)]
    lines = [f"complete P.a{at} a=0.5 b=0.01  4 tokens" for at in range(400)]
    return msgspec.structs.replace(
        finding,
        id=f"{number + 1:06x}",
        title=f"stale thing number {number}",
        kind=KINDS[number % len(KINDS)],
        severity=("high", "medium", "low")[number % 3],
        known=number % 5 == 0,
        known_reason="ticket" if number % 5 == 0 else "",
        found_s=float(1000 - number),
        operations=number + 1,
        max_abs_logprob_delta=0.01 * (number + 1),
        answer=answer,
        unreduced=Original(lines, 400, answer),
    )


def many_happenings() -> Happenings:
    """More events than a page shows."""
    listed = [Happening(float(at), "suspected" if at % 2 else "dropped", f"step {at}") for at in range(MOST)]
    return Happenings(listed, explored=20_000, left_out=600)


def nasty(record: RunRecord) -> RunRecord:
    """A run in which everything that a model or a server says is hostile."""
    finding = record.findings[0]
    texts = dict.fromkeys(finding.token_texts, NASTY)
    steps = [msgspec.structs.replace(step, error=NASTY) for step in finding.steps]
    settings = msgspec.structs.replace(finding.settings, version=NASTY, flags=["--x", NASTY], model=NASTY)
    wire = [msgspec.structs.replace(request, body={**request.body, "grammar": NASTY}) for request in finding.wire]
    hostile = msgspec.structs.replace(
        finding,
        title=NASTY,
        kind=NASTY,
        scenario=NASTY,
        oracle=NASTY,
        severity="high",
        known_reason=NASTY,
        story=[NASTY] * 3,
        explanation=[NASTY],
        token_texts=texts,
        steps=steps,
        settings=settings,
        wire=wire,
        necessary=[NASTY],
    )
    assert record.target is not None
    target = msgspec.structs.replace(record.target, version=NASTY, launch=NASTY, url=NASTY)
    lost = LostReuse(step=1, tokens=9, story=[NASTY], promise=NASTY, settings=[NASTY], wire=wire)
    return msgspec.structs.replace(
        record,
        findings=[hostile],
        target=target,
        reasons=[NASTY],
        not_exercised={NASTY: NASTY},
        scenarios=[NASTY],
        reuse_lost=[lost],
    )
