"""The environment of our child processes: they import our packages from wherever they run, and obey flags alone."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

PACKAGE_ROOT = Path(__file__).resolve().parents[2]
# llama-server reads settings from these too; a finding could not tell of them, nor the embedded server take them.
NOT_PASSED_ON = ("LLAMA_ARG_", "LLAMA_API_KEY")


def child_environment(site: Path | None = None) -> dict[str, str]:
    """Our own environment, made fit for a child; packages in the folder ``site`` come before the installed ones."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED_ON)}
    # A crash would start a debugger for a backtrace, whose pages push the assertion out of the last log lines.
    environment.setdefault("GGML_NO_BACKTRACE", "1")
    installed = str(PACKAGE_ROOT) in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    before = [*([] if installed else [str(PACKAGE_ROOT)]), *([str(site)] if site is not None else [])]
    if before:
        earlier = environment.get("PYTHONPATH")
        # An empty entry would mean the working folder, and a user's own fuzzer/ there would shadow ours.
        environment["PYTHONPATH"] = os.pathsep.join([*before, *([earlier] if earlier else [])])
    return environment
