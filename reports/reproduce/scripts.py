"""The files of findings/<id>/: a shell script, a pytest case, the text of an issue. None of them needs stalefuzz.

Everything from a record goes in as a quoted word, as a literal or as a one-line comment.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Sequence
from functools import cache
from importlib.resources import files

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

from oracles.judgement import Oracle, tells_tokens_apart
from reports import escaping, prose
from reports.escaping import printable
from reports.record import FindingRecord, Wire, WireRequest
from reports.reproduce.model_names import OTHER_WEIGHTS, SERVER_GIVEN, DefaultFile, default_files, tiny_name
from scenarios.operations import Complete, Sampling, Start

_STARTED = "llama.cpp"
_SHAPES = {"n_predict": "llama.cpp", "input_ids": "sglang"}
"""The field of a request that gives away which route it goes to; any other is OpenAI's."""
_ISSUE, _SERVE, _SHELL, _PYTEST = "issue.md.j2", "serve.py.j2", "repro.sh.j2", "test_repro.py.j2"
_DESCRIPTORS = range(3, 10)
"""Those that every shell lets a script name: as many requests can be in flight."""
_ATTEMPTS = 10
"""Where timing decides; each is a fresh server."""


class Scripts(msgspec.Struct, frozen=True):
    """Texts; the first two are empty where there can be no such script."""

    shell: str = ""
    pytest: str = ""
    issue: str = ""
    why_not: str = ""
    """Why there is no script, in words."""


class Request(msgspec.Struct, frozen=True):
    """One line of the scripts, with its line of the story."""

    wire: WireRequest
    words: str
    json: str
    wrong: bool
    """It is the one that is answered wrongly."""
    tolerated: str = ""
    """What a refusal may say that the next one makes up for."""


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
    start: list[str]
    """The command of an engine other than llama.cpp, where it is known."""
    fills: list[str]
    """Files that requests name."""
    tiny: str | None
    bound: float
    reusable: int | None
    """The most prompt tokens that the wrong request could lawfully reuse, where the count is what is wrong."""
    attempts: int
    launched: bool
    """Whether the scripts start a llama-server."""
    shape: str
    """How answers look: those of llama.cpp's own route, of SGLang's, or of OpenAI's."""
    tokens: str
    """Whether other tokens alone show the bug: "never", "always", or "gap" where they do beyond a near-tie."""

    @property
    def adapters(self) -> list[DefaultFile]:
        """The files that the server is started with beside the model."""
        return [file for file in self.files[1:] if file.variable != OTHER_WEIGHTS]

    @property
    def puts(self) -> bool:
        """Whether another file is put in the place of one that the server was started with."""
        return any(request.wire.does is Wire.PUT for request in self.requests)

    @property
    def waits(self) -> bool:
        """Whether something has to be waited for by asking."""
        return any(request.wire.does is Wire.UNTIL for request in self.requests)

    @property
    def restarts(self) -> bool:
        """Whether the server is restarted on the way."""
        return any(request.wire.does is Wire.RESTART for request in self.requests)

    @property
    def saves(self) -> bool:
        """Whether the server writes files that it reads again."""
        return any(isinstance(body := request.wire.body, dict) and "filename" in body for request in self.requests)


def scripts_of(finding: FindingRecord) -> Scripts:
    """All three texts of a finding."""
    recipe = recipe_of(finding)
    why_not = recipe if isinstance(recipe, str) else ""
    known = None if isinstance(recipe, str) else recipe
    issue = _template(_ISSUE).render(r=known, f=finding, prose=prose, why_not=why_not)
    if known is None:
        return Scripts(issue=issue, why_not=why_not)
    serve = _template(_SERVE).render(r=known)
    shell = _template(_SHELL).render(r=known, f=finding, serve=serve)
    return Scripts(shell, _template(_PYTEST).render(r=known, f=finding, serve=serve), issue)


def compile_templates() -> None:
    """Ahead of the first finding: compiling them takes a fifth of a second."""
    for name in (_ISSUE, _SERVE, _SHELL, _PYTEST):
        _template(name)


def recipe_of(finding: FindingRecord) -> Recipe | str:
    """What can be asked with plain HTTP requests; in words why nothing can, where that is so."""
    settings = finding.settings
    why_not = _why_not(finding)
    if why_not:
        return why_not
    followed = zip(finding.wire, [*finding.wire[1:], None], strict=True)
    requests = [_request(finding, wire, following) for wire, following in followed]
    wrong = next(request for request in requests if request.wrong)
    flights = _flights(finding.wire)
    bypass = None if finding.wire_alone is None else _request(finding, finding.wire_alone)
    launched = settings.engine == _STARTED and bool(settings.model)
    files = _files(finding) if launched or settings.start else []
    return Recipe(
        finding=finding,
        requests=requests,
        flights=flights,
        setters=_setters(requests[: requests.index(wrong)]),
        alone=bypass if finding.oracle == Oracle.METAMORPHIC and bypass is not None else wrong,
        bypass=bypass,
        flags=settings.flags,
        embedded=settings.embedded,
        files=files,
        start=settings.start,
        fills=[file.variable for file in files if any(_names(wire.body, file.variable) for wire in finding.wire)],
        tiny=tiny_name(settings) if launched else None,
        bound=finding.bound or 0.0,
        reusable=finding.reusable,
        attempts=_ATTEMPTS if flights else 1,
        launched=launched,
        shape=next((shape for field, shape in _SHAPES.items() if field in (wrong.wire.body or ())), "openai"),
        tokens=_what_tokens_say(finding),
    )


def _files(finding: FindingRecord) -> list[DefaultFile]:
    others = any(wire.file == OTHER_WEIGHTS or _names(wire.body, OTHER_WEIGHTS) for wire in finding.wire)
    return default_files(finding.settings, other_weights=others)


def _why_not(finding: FindingRecord) -> str:
    """Why no script can show the bug; empty where one can."""
    wrong = [wire for wire in finding.wire if wire.step == finding.wrong and wire.path]
    if not finding.wire:
        return finding.no_wire or "its requests are not on record"
    if len(wrong) != 1:
        return f"step {finding.wrong}, which goes wrong, is not a single request"
    if len([wire for wire in finding.wire if wire.does is Wire.START]) > len(_DESCRIPTORS):
        return f"more than {len(_DESCRIPTORS)} of its requests run side by side"
    given = next((wire.step for wire in finding.wire if f"{{{SERVER_GIVEN}" in json.dumps(wire.body)), None)
    if given is not None:
        return f"step {given} names an adapter by the id that the server gave it, which is another one at each start"
    known = {file.variable for file in _files(finding)} if finding.settings.engine == _STARTED else set()
    put = next((one.step for one in finding.wire if one.does is Wire.PUT and not {one.place, one.file} <= known), None)
    if put is not None:
        return f"step {put} puts a file in place that the scripts do not have"
    if finding.oracle == Oracle.METAMORPHIC and finding.wire_alone is None:
        return "there is no other way to say the same thing to this server"
    if finding.bound is None and finding.reusable is None and finding.oracle != Oracle.HEALTH:
        return "how far apart right answers can be is not on record"
    if wrong[0].does is Wire.START and finding.divergence is not None and not finding.divergence.target:
        return "the wrong answer is streamed, and this server streams no log probabilities"
    return ""


def _names(body: object, variable: str) -> bool:
    """Whether a body has a place for this file."""
    if isinstance(body, dict):
        return any(_names(value, variable) for value in body.values())
    return body == f"{{{variable}}}"


def _shell_word(word: str, variables: Collection[str]) -> str:
    """A word of a command, with a shell's variable wherever one is named."""
    parts = re.split(r"\{([A-Z0-9_]+)\}", word)
    spelled = [shlex.quote(part) if part else "" for part in parts]
    spelled[1::2] = [f'"${name}"' if name in variables else shlex.quote(f"{{{name}}}") for name in parts[1::2]]
    return "".join(spelled) or "''"


def _setters(requests: Sequence[Request]) -> list[Request]:
    """What was set and still holds: a restart forgets it."""
    restarts = [at for at, request in enumerate(requests) if request.wire.does is Wire.RESTART]
    return [request for request in requests[restarts[-1] if restarts else 0 :] if request.wire.sets]


def _what_tokens_say(finding: FindingRecord) -> str:
    operation = finding.plan[finding.wrong - 1] if finding.wrong <= len(finding.plan) else None
    if not isinstance(operation, (Complete, Start)) or operation.sampling is Sampling.PLAIN:
        return "gap"
    return "always" if tells_tokens_apart(operation.sampling, 0.0, finding.bound or 0.0) else "never"


def _flights(wires: Sequence[WireRequest]) -> dict[int, int]:
    """A file descriptor for each request in flight."""
    return dict(zip([wire.step for wire in wires if wire.does is Wire.START], _DESCRIPTORS, strict=False))


def _request(finding: FindingRecord, wire: WireRequest, following: WireRequest | None = None) -> Request:
    story = finding.story
    words = story[wire.step - 1] if 0 < wire.step <= len(story) else "before the first step"
    tolerated = following.remedies if following is not None else ""
    wrong = wire.step == finding.wrong and bool(wire.path)
    return Request(wire, words, json.dumps(wire.body, separators=(",", ":")), wrong, tolerated)


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
        "word": _shell_word,
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
