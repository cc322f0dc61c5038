"""The zoo of planted bugs as an engine: ``stalefuzz run --launch zoo -- --bug NAME``."""

from __future__ import annotations

from fuzzer.errors import UsageError
from fuzzer.options import ServerOptions
from fuzzer.servers.engine import Engine, Installation
from fuzzer.servers.http import Connection
from fuzzer.servers.protocol import Server


def _install(options: ServerOptions, exact: bool) -> Installation:
    # Its web server would cost every other command a tenth of a second.
    from fuzzer.zoo.installation import ZooInstallation

    return ZooInstallation(options, exact)


def _attach(url: str, options: ServerOptions) -> Server:
    raise UsageError("a zoo server that runs is reached under the name of the engine whose wire format it speaks")


def _speaks(connection: Connection) -> bool:
    return False


ZOO = Engine("zoo", _attach, _speaks, _install)
