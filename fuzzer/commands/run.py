"""``stalefuzz run``: the options, the servers and the reports put together."""

from __future__ import annotations

from fuzzer.errors import UsageError
from fuzzer.exit_status import Exit, exit_of
from fuzzer.interrupts import interruptible
from fuzzer.options import RunOptions
from fuzzer.rig import Rig
from fuzzer.run import Run
from reports.console import console
from reports.events import Event
from reports.store import Store
from reports.terminal import Terminal
from scenarios.library.catalogue import SCENARIOS, by_name


def run_command(options: RunOptions) -> Exit:
    """Run and report; raises StalefuzzError where nothing could be run."""
    _check_scenarios(options.scenarios)
    rig = Rig(options.servers)
    store = _store(options)
    with interruptible() as interruption, Terminal(console(), options.out) as terminal:

        def sink(event: Event) -> None:
            store.event(event)
            terminal.event(event)

        run = Run(options, rig, interruption, sink, store.run)
        status: Exit | None = None
        try:
            run.execute()
        except KeyboardInterrupt:
            run.interrupted()
            status = Exit.INTERRUPTED
        finally:
            store.close()
        terminal.summary(run.record)
    return status if status is not None else exit_of(run.record)


def _store(options: RunOptions) -> Store:
    try:
        return Store(options.out)
    except OSError as error:
        raise UsageError(f"--out {options.out} cannot be written: {error.strerror}") from None


def _check_scenarios(names: tuple[str, ...]) -> None:
    for name in names:
        if by_name(name) is None:
            known = ", ".join(scenario.name for scenario in SCENARIOS)
            raise UsageError(f"there is no scenario called {name!r}; known: {known}")
