"""The files of findings/<id>/: a shell script, a pytest case, the text of an issue. None of them needs stalefuzz.

Everything from a record goes in as a quoted word, as a literal or as a one-line comment.
"""

from __future__ import annotations

import json
import shlex
from functools import cache
from importlib.resources import files

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

from reports import escaping, prose
from reports.escaping import printable
from reports.record import FindingRecord, WireRequest
from reports.reproduce.model_names import DefaultFile, default_files, tiny_name

_STARTED = "llama.cpp"
_LLAMA_FIELD = "n_predict"
_METAMORPHIC = "metamorphic"


class Scripts(msgspec.Struct, frozen=True):
    """Texts; the first two are empty where the plan has no plain HTTP form."""

    shell: str = ""
    pytest: str = ""
    issue: str = ""


class Request(msgspec.Struct, frozen=True):
    """One request of the scripts, with its line of the story."""

    wire: WireRequest
    words: str
    json: str


class Recipe(msgspec.Struct, frozen=True):
    """What the templates need of a finding."""

    finding: FindingRecord
    requests: list[Request]
    setters: list[Request]
    """What has to be sent before the last request where that is sent alone."""
    alone: Request
    """What is sent to the other fresh server: the last request again, or the same thing in other words."""
    bypass: Request | None
    """The last request, told not to read the cache."""
    flags: list[str]
    embedded: dict[str, tuple[str, object]]
    files: list[DefaultFile]
    tiny: str | None
    bound: float
    launched: bool
    """Whether the scripts can start the server themselves."""
    shape: str
    """How answers look: those of llama.cpp's own route, or of OpenAI's completions."""


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
    if not finding.wire or (finding.bound is None and finding.oracle != "health"):
        return None
    settings = finding.settings
    launched = settings.engine == _STARTED and bool(settings.model)
    if not launched and finding.wire_alone is None:
        return None
    requests = [_request(finding, wire) for wire in finding.wire]
    bypass = None if finding.wire_alone is None else _request(finding, finding.wire_alone)
    spelled = finding.oracle == _METAMORPHIC
    if spelled and bypass is None:
        return None
    return Recipe(
        finding=finding,
        requests=requests,
        setters=[request for request in requests[:-1] if request.wire.sets],
        alone=bypass if spelled and bypass is not None else requests[-1],
        bypass=bypass,
        flags=settings.flags,
        embedded=settings.embedded,
        files=default_files(settings) if launched else [],
        tiny=tiny_name(settings),
        bound=finding.bound or 0.0,
        launched=launched,
        shape="llama.cpp" if _LLAMA_FIELD in finding.wire[-1].body else "openai",
    )


def _request(finding: FindingRecord, wire: WireRequest) -> Request:
    story = finding.story
    words = story[wire.step - 1] if 0 < wire.step <= len(story) else "before the first step"
    return Request(wire, words, json.dumps(wire.body, separators=(",", ":")))


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
