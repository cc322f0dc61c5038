"""summary.md: a run in a page of Markdown, as shown by a CI server beside its log."""

from __future__ import annotations

import os
from pathlib import Path

from reports.escaping import code_block, markdown
from reports.prose import by_reason, compared, loss_in_words, others_in_words, paragraph, until_fixed, verdict_line
from reports.record import FindingRecord, LostReuse, RunRecord

_MOST_FINDINGS = 20
_MARKS = {"clean": "\N{WHITE HEAVY CHECK MARK}", "finding": "\N{CROSS MARK}"}
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def summary(record: RunRecord) -> str:
    """Verdict, a table of findings, and each finding's story."""
    mark = _MARKS.get(record.verdict, "\N{BLACK QUESTION MARK ORNAMENT}")
    parts = [f"## {mark} {markdown(verdict_line(record))}", markdown(compared(record))]
    parts += ["\n".join(f"- {markdown(reason)}" for reason in record.reasons)] if record.reasons else []
    parts += [_table(record.findings)] if record.findings else []
    parts += [_account(finding) for finding in record.findings[:_MOST_FINDINGS]]
    left_out = len(record.findings) - _MOST_FINDINGS
    parts += [f"{left_out} more findings are in run.json."] if left_out > 0 else []
    parts += ["\n".join(f"- {markdown(line)}" for line in others)] if (others := others_in_words(record)) else []
    parts += [_lost(one) for one in record.reuse_lost]
    parts += [_not_exercised(record)] if record.not_exercised else []
    parts += [_baseline(record)] if record.baseline_fixed or record.baseline_unseen else []
    return "\n\n".join([*parts, f"Seed {record.seed}."]) + "\n"


def append_to_step_summary(text: str) -> None:
    """Append to the file that GitHub shows with a job, where the environment names one."""
    named = os.environ.get(STEP_SUMMARY)
    if not named:
        return
    try:
        with Path(named).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        # The report is on disk all the same; a job summary that cannot be written is no reason to fail a run.
        return


def _table(findings: list[FindingRecord]) -> str:
    rows = ["| finding | severity | kind | reproduced | operations | off by | state |", "|---|---|---|---|---|---|---|"]
    return "\n".join([*rows, *map(_row, findings[:_MOST_FINDINGS])])


def _row(finding: FindingRecord) -> str:
    delta = f"{finding.max_abs_logprob_delta:.2g}" if finding.max_abs_logprob_delta is not None else ""
    state = f"known: {finding.known_reason}" if finding.known else "new"
    cells = [f"{finding.id} {finding.title}", finding.severity, finding.kind]
    cells += [f"{finding.reproduced.k} of {finding.reproduced.n}", str(finding.operations), delta, state]
    return f"| {' | '.join(map(markdown, cells))} |"


def _account(finding: FindingRecord) -> str:
    story = "\n".join(f"{number}  {line}" for number, line in enumerate(finding.story[:60], 1))
    return "\n\n".join(
        [
            f"### {markdown(finding.id)} {markdown(finding.title)}",
            markdown(" ".join(paragraph(finding))),
            code_block(story, "text"),
            markdown(until_fixed(finding)),
            code_block(f"stalefuzz replay findings/{finding.id}.json", "sh"),
        ]
    )


def _lost(lost: LostReuse) -> str:
    story = "\n".join(f"{number}  {line}" for number, line in enumerate(lost.story[:60], 1))
    return "\n\n".join(
        ["### Reuse that was lost (no answer is wrong)", markdown(loss_in_words(lost)), code_block(story, "text")]
    )


def _not_exercised(record: RunRecord) -> str:
    grouped = by_reason(record.not_exercised).items()
    rows = [f"- {', '.join(markdown(one) for one in what)}: {markdown(why)}" for why, what in grouped]
    return "\n".join(["Not exercised:", "", *rows])


def _baseline(record: RunRecord) -> str:
    rows = [f"- {markdown(name)} no longer reproduces: take it out of the baseline" for name in record.baseline_fixed]
    rows += [f"- {markdown(name)} was not met in this run" for name in record.baseline_unseen]
    return "\n".join(["Baseline:", "", *rows])
