"""Carries out what an operation is on the wire."""

from __future__ import annotations

import time
from typing import Any

from fuzzer.servers.http import Connection, decode
from fuzzer.servers.own_files import put_in_place
from fuzzer.servers.protocol import Action, Call, Post, Put, RequestRefused, Until

PATIENCE_S = 60.0
"""How long an answer to GET may take to say what is waited for."""
_LOOK_S = 0.02


def carry_out(connection: Connection, action: Action) -> bytes:
    """Send all of ``action``; gives the last answer.

    Raises RequestRefused for the first refusal that nothing makes up for, once all that is always sent has been.
    """
    refusal: RequestRefused | None = None
    answer = b""
    for call in action:
        if not _is_due(call, refusal):
            continue
        try:
            answer = _sent(connection, call)
        except RequestRefused as error:
            refusal = refusal or error
        else:
            refusal = None if isinstance(call, Post) and call.remedies else refusal
    if refusal is not None:
        raise refusal
    return answer


def _is_due(call: Call, refusal: RequestRefused | None) -> bool:
    if not isinstance(call, Post):
        return refusal is None
    if call.remedies:
        return refusal is not None and call.remedies in refusal.reason
    return refusal is None or call.always


def _sent(connection: Connection, call: Call) -> bytes:
    match call:
        case Post(path=path, body=body):
            return connection.post(path, body)
        case Until():
            return _awaited(connection, call)
        case Put():
            put_in_place(call)
            return b""


def _awaited(connection: Connection, call: Until) -> bytes:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = connection.get(call.path)
        if decode(answer, dict[str, Any]).get(call.field) is True:
            return answer
        if time.monotonic() > deadline:
            raise RequestRefused(f"{call.path} did not say {call.field} within {PATIENCE_S:g} s")
        time.sleep(_LOOK_S)
