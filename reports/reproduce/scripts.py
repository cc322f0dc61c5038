"""The files of findings/<id>/: a shell script, a pytest case, the text of an issue. None of them needs stalefuzz.

Everything from a record goes in as a quoted word, as a literal or as a one-line comment.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

from reports import escaping, prose
from reports.escaping import printable
from reports.record import FindingRecord, Wire, WireRequest
from reports.reproduce.model_names import DefaultFile, default_files, tiny_name

_STARTED = "llama.cpp"
_METAMORPHIC = "metamorphic"
_SHAPES = {"n_predict": "llama.cpp", "input_ids": "sglang"}
"""The field of a request that gives away which route it goes to; any other is OpenAI's."""
_CHAT_FIELD = "messages"
"""Answers of the chat route have another form, which the scripts do not read."""
_DESCRIPTORS = range(3, 10)
"""Those that every shell lets a script name: as many requests can be in flight."""
_ATTEMPTS = 10
"""Where timing decides; each is a fresh server."""


class Scripts(msgspec.Struct, frozen=True):
    """Texts; the first two are empty where the plan has no plain HTTP form."""

    shell: str = ""
    pytest: str = ""
    issue: str = ""


class Request(msgspec.Struct, frozen=True):
    """One line of the scripts, with its line of the story."""

    wire: WireRequest
    words: str
    json: str
    wrong: bool
    """It is the one that is answered wrongly."""


class Recipe(msgspec.Struct, frozen=True):
    """What the templates need of a finding."""

    finding: FindingRecord
    requests: list[Request]
    flights: dict[int, int]
    """The steps whose answers come in beside the steps that follow, with the file descriptor of each."""
    setters: list[Request]
    """What has to be sent before the wrong request where that is sent alone."""
    alone: Request
    """What is sent to the other fresh server: the wrong request again, or the same thing in other words."""
    bypass: Request | None
    """The wrong request, told not to read the cache."""
    flags: list[str]
    embedded: dict[str, tuple[str, object]]
    files: list[DefaultFile]
    tiny: str | None
    bound: float
    reusable: int | None
    """The most prompt tokens that the wrong request could lawfully reuse, where the count is what is wrong."""
    attempts: int
    launched: bool
    """Whether the scripts can start the server themselves."""
    shape: str
    """How answers look: those of llama.cpp's own route, of SGLang's, or of OpenAI's completions."""


def scripts_of(finding: FindingRecord) -> Scripts:
    """All three texts of a finding."""
    recipe = recipe_of(finding)
    issue = _template("issue.md.j2").render(r=recipe, f=finding, prose=prose)
    if recipe is None:
        return Scripts(issue=issue)
    serve = _template("serve.py.j2").render(r=recipe)
    shell = _template("repro.sh.j2").render(r=recipe, f=finding, serve=serve)
    return Scripts(shell, _template("test_repro.py.j2").render(r=recipe, f=finding, serve=serve), issue)


def recipe_of(finding: FindingRecord) -> Recipe | None:
    """What can be asked with plain HTTP requests; None where the plan cannot."""
    settings = finding.settings
    launched = settings.engine == _STARTED and bool(settings.model)
    requests = [_request(finding, wire) for wire in finding.wire]
    wrong = next((request for request in requests if request.wrong), None)
    bypass = None if finding.wire_alone is None else _request(finding, finding.wire_alone)
    flights = _flights(finding.wire)
    if wrong is None or flights is None or not _comparable(finding, launched):
        return None
    return Recipe(
        finding=finding,
        requests=requests,
        flights=flights,
        setters=[request for request in requests[: requests.index(wrong)] if request.wire.sets],
        alone=bypass if finding.oracle == _METAMORPHIC and bypass is not None else wrong,
        bypass=bypass,
        flags=settings.flags,
        embedded=settings.embedded,
        files=default_files(settings) if launched else [],
        tiny=tiny_name(settings),
        bound=finding.bound or 0.0,
        reusable=finding.reusable,
        attempts=_ATTEMPTS if flights else 1,
        launched=launched,
        shape=next((shape for field, shape in _SHAPES.items() if field in wrong.wire.body), "openai"),
    )


def _comparable(finding: FindingRecord, launched: bool) -> bool:
    """Whether a script could tell a right answer from the wrong one."""
    if finding.wire_alone is None and (not launched or finding.oracle == _METAMORPHIC):
        return False
    if any(_CHAT_FIELD in (request.body or ()) for request in finding.wire):
        return False
    return finding.bound is not None or finding.reusable is not None or finding.oracle == "health"


def _flights(wires: Sequence[WireRequest]) -> dict[int, int] | None:
    """A file descriptor for each request in flight; None where there are more of them than descriptors."""
    steps = [wire.step for wire in wires if wire.does is Wire.START]
    return dict(zip(steps, _DESCRIPTORS, strict=False)) if len(steps) <= len(_DESCRIPTORS) else None


def _request(finding: FindingRecord, wire: WireRequest) -> Request:
    story = finding.story
    words = story[wire.step - 1] if 0 < wire.step <= len(story) else "before the first step"
    return Request(wire, words, json.dumps(wire.body, separators=(",", ":")), wire.step == finding.wrong)


def _line(text: object) -> str:
    """Text that stays in the comment it is put into."""
    return " ".join(printable(str(text)).split())


def _literal(value: object) -> str:
    """A Python literal: only what JSON can hold goes in."""
    return repr(json.loads(msgspec.json.encode(value)))


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=FunctionLoader(_load),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "sh": lambda value: shlex.quote(str(value)),
        "py": _literal,
        "line": _line,
        "md": escaping.markdown,
        "block": escaping.code_block,
        "needed": prose.element_in_words,
    }
    return environment.get_template(name)


def _load(name: str) -> str:
    return (files("reports.reproduce") / "templates" / name).read_text(encoding="utf-8")
