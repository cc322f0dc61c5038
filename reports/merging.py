"""The cells of a matrix as one record: the worst verdict, all findings, counts added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from oracles.evidence import Verdict
from reports.record import CellRecord, FindingRecord, Requests, Reuse, RoundingRecord, RunRecord


def merged(records: Mapping[str, RunRecord], cells: Sequence[str]) -> RunRecord:
    """The record of the cells that ran, of all that were to run."""
    runs = list(records.values())
    first = runs[0]
    return RunRecord(
        verdict=_verdict(records, cells),
        reasons=_reasons(records, cells),
        seed=first.seed,
        elapsed_s=round(sum(run.elapsed_s for run in runs), 3),
        numerics=", ".join(dict.fromkeys(run.numerics for run in runs if run.numerics)),
        scenarios=_union(run.scenarios for run in runs),
        target=first.target,
        reference=first.reference,
        settings=first.settings,
        noise=first.noise,
        steps=sum(run.steps for run in runs),
        requests=Requests(sum(run.requests.target for run in runs), sum(run.requests.reference for run in runs)),
        reuse=Reuse(sum(run.reuse.hits for run in runs), sum(run.reuse.tokens for run in runs)),
        exercised=_added(run.exercised for run in runs),
        not_exercised={
            f"{name}: {what}": why for name, run in records.items() for what, why in run.not_exercised.items()
        },
        time_to_first_finding_s=_first_finding(runs),
        coverage=_coverage(runs),
        suspects=[suspect for run in runs for suspect in run.suspects],
        reuse_lost=[lost for run in runs for lost in run.reuse_lost],
        rounding=RoundingRecord(
            sum(run.rounding.suspects for run in runs), max((run.rounding.largest for run in runs), default=0.0)
        ),
        findings=_findings(runs),
        baseline_fixed=_union(run.baseline_fixed for run in runs),
        baseline_unseen=[name for name in first.baseline_unseen if all(name in run.baseline_unseen for run in runs)],
        matrix=[_cell(name, run) for name, run in records.items()],
    )


def _cell(name: str, run: RunRecord) -> CellRecord:
    target = f"{run.target.engine} {run.target.version}" if run.target is not None else ""
    flags = " ".join(run.settings.flags) if run.settings is not None else ""
    model = run.settings.model if run.settings is not None else ""
    findings = [finding.id for finding in run.findings]
    return CellRecord(name, str(run.verdict), run.steps, findings, target, model, flags)


def _verdict(records: Mapping[str, RunRecord], cells: Sequence[str]) -> Verdict:
    verdicts = {run.verdict for run in records.values()}
    if Verdict.FINDING in verdicts:
        return Verdict.FINDING
    missing = any(name not in records for name in cells)
    return Verdict.INCONCLUSIVE if missing or Verdict.INCONCLUSIVE in verdicts else Verdict.CLEAN


def _reasons(records: Mapping[str, RunRecord], cells: Sequence[str]) -> list[str]:
    reasons = [f"{name}: {reason}" for name, run in records.items() for reason in run.reasons]
    return reasons + [f"{name}: was not run" for name in cells if name not in records]


def _union(lists: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(item for items in lists for item in items))


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            total[name] = total.get(name, 0) + number
    return total


def _coverage(runs: Sequence[RunRecord]) -> dict[str, dict[str, int]]:
    operations = _union(list(run.coverage) for run in runs)
    return {name: _added(run.coverage.get(name, {}) for run in runs) for name in operations}


def _findings(runs: Sequence[RunRecord]) -> list[FindingRecord]:
    """Each bug once; the first cell that showed it speaks for it."""
    unique: dict[str, FindingRecord] = {}
    for run in runs:
        for finding in run.findings:
            unique.setdefault(finding.id, finding)
    return list(unique.values())


def _first_finding(runs: Sequence[RunRecord]) -> float | None:
    before = 0.0
    for run in runs:
        if run.time_to_first_finding_s is not None:
            return before + run.time_to_first_finding_s
        before += run.elapsed_s
    return None
