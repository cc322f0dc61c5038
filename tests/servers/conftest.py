from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_gguf

from fuzzer.servers.child_environment import PACKAGE_ROOT
from fuzzer.servers.llama_flags import LOOPBACK

# Like llama-server it never looks at its standard input: the pipe put there stays open as long as it lives itself.
DEAF_SERVER = """#!{python} -P
import os, sys
read_end, write_end = os.pipe()
os.set_inheritable(write_end, True)
os.dup2(read_end, 0)
print("arguments:", *sys.argv[1:])
sys.stdout.flush()
known = [word for word in sys.argv[1:] if word not in ("--from-the-future", "eleven")]
os.environ["PYTHONPATH"] = {root!r}
os.execv(sys.executable, [sys.executable, "-P", "-m", "fuzzer.servers.embedded", *known])
"""


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, two adapters for it, one for another shape, and a file that is no GGUF."""
    folder = tmp_path_factory.mktemp("gguf")
    tiny_gguf.write_model(folder / "model.gguf")
    tiny_gguf.write_adapter(folder / "first.gguf", seed=1)
    tiny_gguf.write_adapter(folder / "second.gguf", seed=2)
    tiny_gguf.write_adapter(folder / "misfit.gguf", width=tiny_gguf.WIDTH // 2)
    (folder / "notes.gguf").write_text("not a model at all\n")
    return folder


@pytest.fixture(scope="session")
def model(files: Path) -> list[str]:
    """The flags that every server of these tests starts with."""
    return ["--model", str(files / "model.gguf"), "--threads", "1", "--no-warmup"]


@pytest.fixture(scope="session")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An executable with a real llama-server behind it, which also takes ``--from-the-future eleven``."""
    script = tmp_path_factory.mktemp("bin") / "llama-server"
    script.write_text(DEAF_SERVER.format(python=sys.executable, root=str(PACKAGE_ROOT)))
    script.chmod(0o755)
    return script


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port on which something listens that never answers."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        yield listener.getsockname()[1]
