"""Renders report.html: every text escaped, every script and style named by its hash in the page's own policy."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from oracles.noise import Bound
from reports import prose
from reports.escaping import printable
from reports.happenings import Happenings
from reports.html import charts
from reports.html.lanes import Timeline, timeline
from reports.record import FindingRecord, LostReuse, RunRecord
from reports.reproduce.curl_lines import curl_lines
from reports.reproduce.scripts import Scripts
from scenarios.plans import Plan
from scenarios.story import story_lines

_MOST_FINDINGS = 100
_MOST_LINES = 80
_MOST_TOKENS = 40
_MOST_SUSPECTS = 100
_MOST_SCRIPT = 16_000
_MOST_SCRIPTS = 400_000
"""Characters of scripts on the whole page; they are in files beside it too."""
_FLAG = re.compile(r"(?<!\S)--[a-z][a-z-]*")
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
    legend: str
    """What the names in the plans stand for."""
    scripted: bool
    no_script: str
    """Why there is no script, where there is none."""
    unfolded: bool
    left_out: list[str]
    """What was cut for length, in words."""


class LossView(msgspec.Struct, frozen=True):
    """Lost reuse and the requests that show it."""

    record: LostReuse
    copy: Copyable


def render(record: RunRecord, scripts: Mapping[str, Scripts], happenings: Happenings) -> str:
    """The whole page."""
    style, script = _asset("report.css"), _asset("report.js")
    shown = record.findings[:_MOST_FINDINGS]
    room = _Room(_MOST_SCRIPTS)
    views = [_view(finding, at, record, scripts.get(finding.id), room) for at, finding in enumerate(shown)]
    observed = [point for finding in record.findings for point in charts.observed_delta(finding)]
    return template().render(
        record=record,
        policy=_policy(style, script),
        style=style,
        script=script,
        findings=views,
        findings_left_out=len(record.findings) - len(views),
        suspects=record.suspects[:_MOST_SUSPECTS],
        suspects_left_out=max(0, len(record.suspects) - _MOST_SUSPECTS),
        lost=[_loss(lost, at, room) for at, lost in enumerate(record.reuse_lost[:_MOST_SUSPECTS])],
        noise=charts.noise_plot(record.noise, observed),
        lines=charts.lines_over_time(record),
        coverage=charts.coverage_table(record),
        happenings=happenings,
        prose=prose,
    )


class _Room:
    """What is left of a page's length for scripts."""

    def __init__(self, left: int) -> None:
        self._left = left

    def takes(self, text: str) -> bool:
        """Whether the text still fits; it counts from then on."""
        if len(text) > min(self._left, _MOST_SCRIPT):
            return False
        self._left -= len(text)
        return True


def _view(finding: FindingRecord, at: int, record: RunRecord, scripts: Scripts | None, room: _Room) -> FindingView:
    original = finding.unreduced
    story = original.story if original is not None else story_lines(Plan(finding.original))
    answer = original.answer if original is not None else []
    return FindingView(
        record=finding,
        paragraph=prose.paragraph(finding),
        until_fixed=prose.until_fixed(finding),
        timeline=timeline(finding),
        strip=charts.strip(finding, finding.answer[:_MOST_TOKENS], finding.bound),
        original_strip=charts.strip(finding, answer[: _MOST_TOKENS // 2], finding.bound),
        top=charts.top_table(finding),
        noise=charts.noise_plot(_plain(record.noise), charts.observed_delta(finding)),
        original=story[:_MOST_LINES],
        original_wrong=original.wrong if original is not None else 0,
        story=finding.story[:_MOST_LINES],
        copies=_copies(finding, scripts, room),
        legend=prose.legend([*finding.story, *story]),
        scripted=scripts is not None and bool(scripts.shell),
        no_script=scripts.why_not if scripts is not None else "",
        unfolded=at < _OPEN,
        left_out=_left_out(finding, story),
    )


def _plain(bounds: Sequence[Bound]) -> list[Bound]:
    """The bounds under the settings that a run began with; those of other settings carry them in brackets."""
    return [bound for bound in bounds if "[" not in bound.situation]


def _left_out(finding: FindingRecord, story: Sequence[str]) -> list[str]:
    cut = [
        (len(finding.answer) - _MOST_TOKENS, "tokens of the answer"),
        (len(finding.story) - _MOST_LINES, "steps of the minimal plan"),
        (len(story) - _MOST_LINES, "steps of the original plan"),
    ]
    return [f"{count} more {what}" for count, what in cut if count > 0]


def _copies(finding: FindingRecord, scripts: Scripts | None, room: _Room) -> list[Copyable]:
    replay = Copyable("replay", "Replay command", f"stalefuzz replay stalefuzz-out/findings/{finding.id}.json")
    if scripts is None:
        return [replay]
    texts = [
        ("curl", "curl script", scripts.shell, "repro.sh"),
        ("pytest", "pytest case", scripts.pytest, "test_repro.py"),
        ("issue", "Issue text", scripts.issue, "ISSUE.md"),
    ]
    rows = [
        Copyable(name, label, text) if room.takes(text) else Copyable(name, label, "", f"findings/{finding.id}/{file}")
        for name, label, text, file in texts
        if text
    ]
    return [replay, *rows]


def _loss(lost: LostReuse, at: int, room: _Room) -> LossView:
    text = curl_lines(lost.wire, lost.story)
    return LossView(lost, Copyable(f"lost-{at}", "Requests with curl", text if room.takes(text) else ""))


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


def _body(text: str) -> str:
    """Escaped for the inside of an element, where quotes may stay: they are a fifth of every script."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _with_whole_flags(text: str) -> Markup:
    """Escaped, with flags that no line ends within."""
    return Markup(_FLAG.sub(r'<span class="whole">\g<0></span>', str(escape(printable(text)))))


@cache
def _asset(name: str) -> str:
    return (files("reports.html") / "assets" / name).read_text(encoding="utf-8")


def _load(name: str) -> str:
    return (files("reports.html") / "templates" / name).read_text(encoding="utf-8")


@cache
def template() -> Template:
    """The page's template, which takes a third of a second to compile the first time."""
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_load),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters["body"] = _body
    environment.filters["flags"] = _with_whole_flags
    environment.filters["signed"] = lambda value: f"{value:.3g}".replace("-", "\N{MINUS SIGN}")
    # The page imports it when it is drawn; whoever compiles beforehand wants both.
    environment.get_template("macros.j2")
    return environment.get_template("report.html.j2")
