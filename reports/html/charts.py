"""Geometry of the small charts: noise bands, top-k bars, lines over time, coverage heat."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from oracles.noise import Bound, Noise
from reports.escaping import token_text
from reports.record import AnswerToken, FindingRecord, RunRecord, Sample

HEATS = 6
_TOP_ROWS = 6
"""Of each side, the likeliest."""
_DECADES = (-7, 2)
_RIGHT, _ROW = 24.0, 30.0
_WIDTH = 640.0
_LONGEST_NAME = 44


class Tick(msgspec.Struct, frozen=True):
    """A mark on an axis."""

    at: float
    label: str


class Band(msgspec.Struct, frozen=True):
    """One class of requests: how far legal computation went, the bound, and what was observed."""

    name: str
    y: float
    largest_x: float
    bound_x: float
    observed: list[float]
    words: str
    here: bool


class NoisePlot(msgspec.Struct, frozen=True):
    """Bands over a logarithmic axis in nats."""

    width: float
    height: float
    left: float
    right: float
    bands: list[Band]
    ticks: list[Tick]
    title: str


def noise_plot(bounds: Sequence[Bound], observed: Iterable[tuple[str, float]]) -> NoisePlot:
    """Bounds with observed |delta logprob| in their class; a class that was not measured has the widest bound."""
    points = list(observed)
    bounds = [*bounds, *_unmeasured(bounds, points)]
    names = [_shortened(bound.situation) for bound in bounds]
    axis = _Axis(12 + 6.4 * max(map(len, names), default=0))
    bands = [_band(bound, name, at, points, axis) for at, (bound, name) in enumerate(zip(bounds, names, strict=True))]
    bottom = 14 + _ROW * len(bands)
    ticks = [Tick(axis.x(10.0**decade), _power(decade)) for decade in range(_DECADES[0], _DECADES[1])]
    title = "; ".join(f"{band.name}: {band.words}" for band in bands)
    return NoisePlot(_WIDTH, bottom + 36, axis.left, _WIDTH - _RIGHT, bands, ticks, title)


def _unmeasured(bounds: Sequence[Bound], points: Sequence[tuple[str, float]]) -> list[Bound]:
    measured = {bound.situation for bound in bounds}
    names = dict.fromkeys(situation for situation, _ in points if situation and situation not in measured)
    return [Bound(name, Noise(tuple(bounds)).bound(), 0, 0.0) for name in names]


def _band(bound: Bound, name: str, at: int, points: list[tuple[str, float]], axis: _Axis) -> Band:
    mine = [delta for situation, delta in points if situation == bound.situation]
    words = (
        f"{bound.samples} samples, largest {bound.largest:.1e}" if bound.samples else "not measured, held to the widest"
    )
    words += f", bound {bound.bound:.1e}"
    words += f", observed {max(mine):.2g}" if mine else ""
    observed = sorted({axis.x(delta) for delta in mine})
    return Band(name, 14 + _ROW * at, axis.x(bound.largest), axis.x(bound.bound), observed, words, bool(mine))


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}\N{HORIZONTAL ELLIPSIS}"


class _Axis(msgspec.Struct, frozen=True):
    """A logarithmic axis that begins at ``left``."""

    left: float

    def x(self, value: float) -> float:
        """Where a value lies; at the nearer end where it lies beyond."""
        low, high = _DECADES
        share = (math.log10(value) - low) / (high - low) if value > 0 else 0.0
        return round(self.left + min(max(share, 0.0), 1.0) * (_WIDTH - self.left - _RIGHT), 1)


def _power(decade: int) -> str:
    superscripts = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "1" if decade == 0 else "10" if decade == 1 else f"10{str(decade).translate(superscripts)}"


def observed_delta(finding: FindingRecord) -> list[tuple[str, float]]:
    """The point of a finding in the noise plot."""
    delta = finding.max_abs_logprob_delta
    return [] if delta is None else [(finding.situation, delta)]


class TopRow(msgspec.Struct, frozen=True):
    """One token at the first divergence, on both sides; widths are shares of 100."""

    token: int
    text: str
    target: float | None
    reference: float | None
    target_width: float
    reference_width: float
    delta: float | None
    chosen_by: str


class TopTable(msgspec.Struct, frozen=True):
    """Both top-k lists, merged; bars begin at ``base``."""

    rows: list[TopRow]
    base: float
    gap: float | None
    position: int


def top_table(finding: FindingRecord) -> TopTable | None:
    """The tokens that either side holds likely, in the reference's order, then the target's."""
    at = finding.divergence
    if at is None or not at.target or not at.reference:
        return None
    target = {entry.id: entry.logprob for entry in at.target}
    reference = {entry.id: entry.logprob for entry in at.reference}
    base = math.floor(min([*target.values(), *reference.values()]) - 0.5)
    answer = finding.answer[at.position] if at.position < len(finding.answer) else AnswerToken(None)
    shown = [*list(reference)[:_TOP_ROWS], *list(target)[:_TOP_ROWS]]
    rows = [_top_row(finding, token, target, reference, base, answer) for token in dict.fromkeys(shown)]
    return TopTable(rows, base, at.gap, at.position + 1)


def _top_row(
    finding: FindingRecord,
    token: int,
    target: dict[int, float],
    reference: dict[int, float],
    base: float,
    answer: AnswerToken,
) -> TopRow:
    ours, theirs = target.get(token), reference.get(token)
    sides = [side for side, chosen in (("target", answer.target), ("reference", answer.reference)) if chosen == token]
    return TopRow(
        token=token,
        text=token_text(finding.token_texts.get(str(token), "")),
        target=ours,
        reference=theirs,
        target_width=_share(ours, base),
        reference_width=_share(theirs, base),
        delta=abs(ours - theirs) if ours is not None and theirs is not None else None,
        chosen_by=" and ".join(sides),
    )


def _share(value: float | None, base: float) -> float:
    return 0.0 if value is None or base >= 0 else round(100 * min(max((value - base) / -base, 0.0), 1.0), 1)


class StripCell(msgspec.Struct, frozen=True):
    """One position of the token strip."""

    position: int
    target: str
    reference: str
    delta: float | None
    heat: int
    differs: bool


def strip(finding: FindingRecord, answer: Sequence[AnswerToken], bound: float | None) -> list[StripCell]:
    """Both answers, token by token, with the difference as heat."""
    return [
        StripCell(
            position=at,
            target=_shown(finding, row.target),
            reference=_shown(finding, row.reference),
            delta=row.delta,
            heat=heat(row.delta, bound),
            differs=row.target != row.reference,
        )
        for at, row in enumerate(answer, 1)
    ]


def _shown(finding: FindingRecord, token: int | None) -> str:
    if token is None:
        return "\N{EN DASH}"
    text = finding.token_texts.get(str(token))
    return token_text(text) if text else f"#{token}"


def heat(delta: float | None, bound: float | None) -> int:
    """0 within the bound, then one more for each factor of ten beyond it, to HEATS - 1."""
    if delta is None or not bound or delta <= bound:
        return 0
    return min(1 + int(math.log10(delta / bound)), HEATS - 1)


class Line(msgspec.Struct, frozen=True):
    """One small line chart."""

    name: str
    unit: str
    points: str
    ticks: list[Tick]
    most: str
    title: str


def lines_over_time(record: RunRecord) -> list[Line]:
    """Requests a second and the share of them that reused something, from the run's samples."""
    pairs = list(zip(record.series, record.series[1:], strict=False))
    if len(pairs) < 2:
        return []
    return [
        _line("Requests", "a second", pairs, lambda a, b: _per(b.requests - a.requests, b.at - a.at)),
        _line(
            "Operations that reused something",
            "%",
            pairs,
            lambda a, b: _per(100 * (b.hits - a.hits), b.steps - a.steps),
        ),
    ]


def _line(name: str, unit: str, pairs: list[tuple[Sample, Sample]], value: Callable[[Sample, Sample], float]) -> Line:
    values = _smooth([value(*pair) for pair in pairs])
    most = max([*values, 1e-9])
    start, end = pairs[0][0].at, pairs[-1][1].at
    xs = [560 * (pair[1].at - start) / max(end - start, 1e-9) for pair in pairs]
    points = " ".join(f"{x:.1f},{100 - 92 * y / most:.1f}" for x, y in zip(xs, values, strict=True))
    digits = 0 if end - start >= 8 else 1
    ticks = [Tick(560 * at / 4, f"{start + at * (end - start) / 4:.{digits}f} s") for at in range(5)]
    mean = sum(values) / len(values)
    return Line(name, unit, points, ticks, f"{most:.3g}", f"{name}: mean {mean:.3g} {unit}, most {most:.3g} {unit}")


def _per(amount: float, of: float) -> float:
    return amount / of if of > 0 else 0.0


def _smooth(values: Sequence[float], reach: int = 2) -> list[float]:
    return [
        sum(window) / len(window)
        for at in range(len(values))
        if (window := values[max(0, at - reach) : at + reach + 1])
    ]


class CoverageTable(msgspec.Struct, frozen=True):
    """Operation by situation; a column an operation, since their names are the shorter ones."""

    operations: list[str]
    rows: list[tuple[str, list[tuple[int, int]]]]
    """Situation; of each operation the count and its heat."""


def coverage_table(record: RunRecord) -> CoverageTable:
    """The run's coverage as a grid; a combination that never came up counts 0."""
    situations = list(dict.fromkeys(name for row in record.coverage.values() for name in row))
    rows = [
        (name, [(row.get(name, 0), _count_heat(row.get(name, 0))) for row in record.coverage.values()])
        for name in situations
    ]
    return CoverageTable(list(record.coverage), rows)


def _count_heat(count: int) -> int:
    return 0 if count == 0 else min(1 + int(math.log10(count)), HEATS - 1)
