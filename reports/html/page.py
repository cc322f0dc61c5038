"""Renders report.html: every text escaped, every script and style named by its hash in the page's own policy."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from reports import prose
from reports.escaping import printable
from reports.happenings import Happenings
from reports.html import charts
from reports.html.lanes import Timeline, timeline
from reports.record import FindingRecord, RunRecord
from reports.reproduce.scripts import Scripts
from scenarios.plans import Plan
from scenarios.story import story_lines

_MOST_FINDINGS = 100
_MOST_LINES = 80
_MOST_TOKENS = 64
_MOST_SUSPECTS = 100
_MOST_SCRIPT = 8_000
_OPEN = 2
"""Findings that are unfolded when the page opens."""


class Copyable(msgspec.Struct, frozen=True):
    """Something that the reader takes away."""

    name: str
    label: str
    text: str
    left_out: str = ""
    """Where it is instead, when it is too long for the page."""


class FindingView(msgspec.Struct, frozen=True):
    """One finding, ready for the template."""

    record: FindingRecord
    paragraph: list[str]
    until_fixed: str
    timeline: Timeline
    strip: list[charts.StripCell]
    original_strip: list[charts.StripCell]
    top: charts.TopTable | None
    noise: charts.NoisePlot
    original: list[str]
    original_wrong: int
    story: list[str]
    copies: list[Copyable]
    unfolded: bool
    left_out: list[str]
    """What was cut for length, in words."""


def render(record: RunRecord, scripts: Mapping[str, Scripts], happenings: Happenings) -> str:
    """The whole page."""
    style, script = _asset("report.css"), _asset("report.js")
    shown = record.findings[:_MOST_FINDINGS]
    views = [_view(finding, at, record, scripts.get(finding.id)) for at, finding in enumerate(shown)]
    observed = [point for finding in record.findings for point in charts.observed_delta(finding)]
    return _template().render(
        record=record,
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        findings=views,
        findings_left_out=len(record.findings) - len(views),
        suspects=record.suspects[:_MOST_SUSPECTS],
        suspects_left_out=max(0, len(record.suspects) - _MOST_SUSPECTS),
        noise=charts.noise_plot(record.noise, observed),
        lines=charts.lines_over_time(record),
        coverage=charts.coverage_table(record),
        happenings=happenings,
        prose=prose,
    )


def _view(finding: FindingRecord, at: int, record: RunRecord, scripts: Scripts | None) -> FindingView:
    original = finding.unreduced
    story = original.story if original is not None else story_lines(Plan(finding.original))
    answer = original.answer if original is not None else []
    return FindingView(
        record=finding,
        paragraph=prose.paragraph(finding),
        until_fixed=prose.until_fixed(finding),
        timeline=timeline(finding),
        strip=charts.strip(finding, finding.answer[:_MOST_TOKENS], finding.bound),
        original_strip=charts.strip(finding, answer[:_MOST_TOKENS], finding.bound),
        top=charts.top_table(finding),
        noise=charts.noise_plot(record.noise, charts.observed_delta(finding)),
        original=story[:_MOST_LINES],
        original_wrong=original.wrong if original is not None else 0,
        story=finding.story[:_MOST_LINES],
        copies=_copies(finding, scripts),
        unfolded=at < _OPEN,
        left_out=_left_out(finding, story),
    )


def _left_out(finding: FindingRecord, story: Sequence[str]) -> list[str]:
    cut = [
        (len(finding.answer) - _MOST_TOKENS, "tokens of the answer"),
        (len(finding.story) - _MOST_LINES, "steps of the minimal plan"),
        (len(story) - _MOST_LINES, "steps of the original plan"),
    ]
    return [f"{count} more {what}" for count, what in cut if count > 0]


def _copies(finding: FindingRecord, scripts: Scripts | None) -> list[Copyable]:
    replay = Copyable("replay", "Replay command", f"stalefuzz replay stalefuzz-out/findings/{finding.id}.json")
    if scripts is None:
        return [replay]
    texts = [
        ("curl", "curl script", scripts.shell, "repro.sh"),
        ("pytest", "pytest case", scripts.pytest, "test_repro.py"),
        ("issue", "Issue text", scripts.issue, "ISSUE.md"),
    ]
    return [replay, *(_bounded(finding, *row) for row in texts if row[2])]


def _bounded(finding: FindingRecord, name: str, label: str, text: str, file: str) -> Copyable:
    if len(text) <= _MOST_SCRIPT:
        return Copyable(name, label, text)
    return Copyable(name, label, "", f"findings/{finding.id}/{file}")


def _policy(style: str, script: str) -> str:
    """Content-Security-Policy: nothing is loaded from anywhere, and only these two texts count as style and code."""
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_hash_source(style)}'",
            f"script-src '{_hash_source(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash_source(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _asset(name: str) -> str:
    return (files("reports.html") / "assets" / name).read_text(encoding="utf-8")


def _load(name: str) -> str:
    return (files("reports.html") / "templates" / name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_load),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters["signed"] = lambda value: f"{value:.3g}".replace("-", "\N{MINUS SIGN}")
    return environment.get_template("report.html.j2")
