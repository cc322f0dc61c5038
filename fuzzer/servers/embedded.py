"""The embedded llama-server: ``python -P -m fuzzer.servers.embedded <llama-server flags>``.

Runs llama.cpp's own server code out of the xllamacpp wheel, prints one line of JSON with its address, and lives until
its standard input ends. Only light modules are imported, since every confirmation of a finding pays for this start.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import xllamacpp

from fuzzer.errors import UsageError
from fuzzer.servers import lifeline
from fuzzer.servers.llama_flag_table import BY_NAME, HOST, LORA, SLOT_SAVE_PATH, Value
from fuzzer.servers.llama_flags import LOOPBACK, LlamaFlags, LoraFile, parse_flags

# Where the wheel's own defaults differ from those of the llama-server executable.
EXECUTABLE_DEFAULTS = LlamaFlags({HOST: LOOPBACK, "--port": 0, "--parallel": -1})
FLASH_ATTENTION = {"auto": "AUTO", "off": "DISABLED", "on": "ENABLED"}


def main(argv: Sequence[str]) -> int:
    address_pipe = _take_stdout()
    lifeline.end_with_parent_even_while_busy()
    try:
        server = xllamacpp.Server(common_params(parse_flags(argv)))
    except (UsageError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    # Wheels before about 2026.10 take SIGTERM for themselves, and then end no sooner than they are killed.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with os.fdopen(address_pipe, "w") as pipe:
        json.dump({"url": server.listening_address, "pid": os.getpid()}, pipe)
        pipe.write("\n")
    lifeline.wait()
    return 0


def common_params(flags: LlamaFlags) -> xllamacpp.CommonParams:
    """llama.cpp's settings for these flags; raises UsageError for a flag that this wheel has no field for."""
    flags = flags.with_defaults(EXECUTABLE_DEFAULTS).with_defaults(_batch_threads_follow(flags))
    params = xllamacpp.CommonParams()
    for name, value in flags.settings.items():
        _set(params, name, _native(name, value))
    if flags.adapters:
        _set(params, LORA, [_native_lora(adapter) for adapter in flags.adapters])
    return params


def _batch_threads_follow(flags: LlamaFlags) -> LlamaFlags:
    threads = flags.get("--threads")
    return LlamaFlags() if threads is None else LlamaFlags({"--threads-batch": threads})


def _take_stdout() -> int:
    """Keep the real stdout for the address; whatever C++ prints there goes to the log."""
    address_pipe = os.dup(1)
    os.dup2(2, 1)
    return address_pipe


def _native(name: str, value: Value) -> Any:
    match name:
        case "--flash-attn":
            kind = FLASH_ATTENTION[str(value)]
            return xllamacpp.llama_flash_attn_type[f"LLAMA_FLASH_ATTN_TYPE_{kind}"]
        case "--cache-type-k" | "--cache-type-v":
            return xllamacpp.ggml_type[f"GGML_TYPE_{str(value).upper()}"]
        case "--threads" | "--threads-batch" if int(value) <= 0:
            # The wheel aborts on 0; the executable reads it as all cores.
            return os.cpu_count()
        case "--seed":
            return int(value) % 2**32
        case "--alias":
            return {str(value)}
        case _ if name == SLOT_SAVE_PATH:
            # llama.cpp puts the file's name right behind this text.
            return os.path.join(str(value), "")  # noqa: PTH118
    return value


def _native_lora(adapter: LoraFile) -> Any:
    return xllamacpp.CommonAdapterLoraInfo(adapter.path, adapter.scale)


def _set(params: Any, name: str, value: Any) -> None:
    *outer, field = BY_NAME[name].field.split(".")
    for part in outer:
        params = getattr(params, part)
    if name == HOST:
        field, value = _host_field(params, str(value))
    if not hasattr(params, field):
        version = xllamacpp.__version__
        raise UsageError(f"xllamacpp {version} does not know {name}: leave the flag out or install a newer wheel.")
    setattr(params, field, value)


def _host_field(params: Any, host: str) -> tuple[str, str | list[str]]:
    """Wheels before about 2026.10 have one host name instead of a list."""
    return ("hostnames", [host]) if hasattr(params, "hostnames") else ("hostname", host)


def run(argv: Sequence[str]) -> NoReturn:
    """A server until this process is told to end, and its end."""
    code = main(argv)
    if code:
        # llama.cpp logs from a thread of its own, which an orderly exit waits for: it may have the reason still to say.
        sys.exit(code)
    sys.stderr.flush()
    # The server's own threads are not worth waiting for: nothing that it holds outlives the process.
    os._exit(code)


if __name__ == "__main__":
    run(sys.argv[1:])
