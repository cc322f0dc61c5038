"""A llama-server that gives its slot back after a sleep what it held before, whatever it has loaded since.

The real one, behind a proxy that saves the slot after each completion and restores it after each wake. Run as a script
it takes llama-server's flags.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fuzzer.servers.fork_server import command_of

_EXECUTABLE = """#!{python} -P
import sys
sys.path[:0] = {places!r}
import stale_wake
stale_wake.main(sys.argv[1:], {folder!r})
"""
_SLOT = "stale-wake.bin"


def executable(folder: Path) -> Path:
    """It, as a file for ``--binary``."""
    places = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    path = folder / "llama-server"
    path.write_text(_EXECUTABLE.format(python=sys.executable, places=places, folder=str(folder)))
    path.chmod(0o755)
    return path


def main(flags: list[str], folder: str) -> None:
    """Serve until the process is ended; what it saves goes below ``folder``."""
    port = int(flags[flags.index("--port") + 1])
    # Of its own: a reference saves under the same name.
    saved = tempfile.mkdtemp(dir=folder)
    command = command_of("fuzzer.servers.embedded", [*flags, "--port", "0", "--slot-save-path", saved])
    paths = {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | paths) as server:
        assert server.stdout is not None
        _Proxy.behind = json.loads(server.stdout.readline())["url"]
        ThreadingHTTPServer(("127.0.0.1", port), _Proxy).serve_forever()


class _Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    behind = ""
    last: dict[str, Any] | None = None
    """The last completion that was asked for."""
    asleep = False

    def do_GET(self) -> None:
        answer = self._forwarded(None)
        if self.path == "/props" and json.loads(answer)["is_sleeping"]:
            _Proxy.asleep = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._forwarded(body, done=lambda: self._after(body))

    def _after(self, body: bytes) -> None:
        if self.path == "/completion":
            _Proxy.last = json.loads(body)
            _ask("/slots/0?action=save", {"filename": _SLOT})
        elif _Proxy.asleep and _Proxy.last is not None:
            # Adapters other than those of the request before would have the slot emptied.
            _ask("/completion", _Proxy.last | {"prompt": [5, 6], "n_predict": 1, "stream": False})
            _ask("/slots/0?action=restore", {"filename": _SLOT})
        _Proxy.asleep = False

    def _forwarded(self, body: bytes | None, done: Any = lambda: None) -> bytes:
        connection = http.client.HTTPConnection(str(urlsplit(self.behind).netloc))
        connection.request(self.command, self.path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.getheader("Content-Type", ""))
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        whole = b""
        while part := answer.read1():
            whole += part
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        done()
        self.wfile.write(b"0\r\n\r\n")
        connection.close()
        return whole

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the server has a log of its own."""


def _ask(path: str, body: dict[str, Any]) -> None:
    connection = http.client.HTTPConnection(str(urlsplit(_Proxy.behind).netloc))
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
