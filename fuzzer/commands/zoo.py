"""``stalefuzz zoo``: the servers with planted bugs, listed and served."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from fuzzer.errors import UsageError
from fuzzer.exit_status import Exit
from fuzzer.zoo import serve
from fuzzer.zoo.catalogue import MUTANTS
from reports.console import console


def list_command() -> Exit:
    """One line a planted bug."""
    table = Table("bug", "kind", "flavour", "family", "shortest", "follows", "mistake", box=None, pad_edge=False)
    for mutant in MUTANTS.values():
        operations = str(mutant.operations)
        family = mutant.family.value
        table.add_row(mutant.name, mutant.kind, mutant.flavour, family, operations, mutant.report, mutant.mistake)
    console().print(table)
    return Exit.CLEAN


def serve_command(bug: str | None, arguments: Sequence[str]) -> Exit:
    """Serve until standard input ends or Ctrl-C; raises UsageError for an unknown bug."""
    if bug is not None and bug not in MUTANTS:
        raise UsageError(f"there is no planted bug called {bug!r}; `stalefuzz zoo list` names them")
    serve.run([*(("--bug", bug) if bug is not None else ()), *arguments])
    return Exit.CLEAN
