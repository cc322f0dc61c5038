"""No server outlives the process that launched it, however that process ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from asking import is_gone_soon, is_running

from fuzzer.servers.child_environment import child_environment

LAUNCHER = """
import signal, sys, threading
from pathlib import Path
from fuzzer.servers.launched import launch_binary, launch_embedded

binary, *flags = sys.argv[1:]
server = launch_binary(Path(binary), flags) if binary else launch_embedded(flags)
starter = threading.Thread(target=server.start)
starter.start()
starter.join()
print(server.pid, flush=True)
signal.pause()
"""

BUSY = """
from fuzzer.servers import lifeline
lifeline.end_with_parent_even_while_busy()
print("busy", flush=True)
sum(range(10**15))  # never lets another thread have the interpreter
"""


def launcher(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-c", LAUNCHER, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=child_environment(), text=True)


@pytest.mark.parametrize("kind", ["embedded", "binary"])
def test_a_server_dies_with_a_launcher_that_is_killed(kind: str, model: list[str], llama_server: Path) -> None:
    with launcher(str(llama_server) if kind == "binary" else "", *model) as parent:
        assert parent.stdout is not None
        server = int(parent.stdout.readline())
        assert is_running(server)
        parent.kill()
    assert is_gone_soon(server)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel signals the end of the pipe on Linux only")
def test_a_server_that_is_still_loading_dies_too() -> None:
    command = [sys.executable, "-P", "-c", BUSY]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=child_environment(), text=True) as busy:
        assert busy.stdin is not None
        assert busy.stdout is not None
        assert busy.stdout.readline() == "busy\n"
        busy.stdin.close()
        assert is_gone_soon(busy.pid)
