"""Requests as curl lines for a shell in which URL is set, each with what its answer says was reused."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence

from reports.escaping import printable
from reports.record import Wire, WireRequest

_COUNT = r"""| grep -oE '"(cache_n|cached_tokens)": *[0-9]+'"""
_IN_WORDS = {
    Wire.AWAIT: "wait for its tokens",
    Wire.JOIN: "wait for its end",
    Wire.ABORT: "close its connection",
    Wire.RESTART: "restart the server",
}


def curl_lines(wire: Iterable[WireRequest], story: Sequence[str]) -> str:
    """One comment and one command for each request."""
    return "\n".join(line for request in wire for line in _lines(request, story))


def _lines(request: WireRequest, story: Sequence[str]) -> Iterator[str]:
    words = story[request.step - 1] if 0 < request.step <= len(story) else "before the first step"
    yield f"# {request.step}  {_words(words)}"
    address = f'"$URL"{shlex.quote(request.path)}'
    if request.does in (Wire.SEND, Wire.START):
        body = shlex.quote(json.dumps(request.body, separators=(",", ":")))
        asks = isinstance(request.body, dict) and bool({"prompt", "input_ids", "messages"} & request.body.keys())
        rest = (_COUNT if asks else ">/dev/null") + (" &" if request.does is Wire.START else "")
        yield f"curl -s {address} -H 'Content-Type: application/json' -d {body} {rest}"
    elif request.does is Wire.PUT:
        yield f"# put {_words(request.file)} in the place of {_words(request.place)}"
    elif request.does is Wire.UNTIL:
        yield f"# wait until this says {_words(request.field)}:"
        yield f"curl -s {address}"
    else:
        yield f"# {_IN_WORDS[request.does]}"


def _words(text: str) -> str:
    """Text that stays in the comment it is put into."""
    return " ".join(printable(text).split())
