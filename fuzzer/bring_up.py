"""Target and reference brought up for one command, and gone when it ends, also where only one of them came up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

from fuzzer.differential import Differential
from fuzzer.rig import Rig
from fuzzer.triage.lab import Lab
from oracles.noise import Noise


def bring_up(rig: Rig, stack: ExitStack) -> tuple[Differential, ThreadPoolExecutor]:
    """The comparison, its noise not yet measured, and the pool in which further servers may be started."""
    # Called last: whatever still waits in the pools is answered, or ended, before the servers are.
    stack.callback(rig.stop)
    # A leg of the reference that nobody waits for any more runs to its end: closed before, it would connect anew.
    once_idle = stack.enter_context(ExitStack())
    reference_pool = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="reference"))
    start_pool = stack.enter_context(ThreadPoolExecutor(2, thread_name_prefix="start"))
    target, reference = rig.start(start_pool)
    once_idle.callback(reference.close)
    return Differential(target, reference, Noise(()), pool=reference_pool), start_pool


def laboratory(
    rig: Rig, live: Differential, start_pool: ThreadPoolExecutor, stack: ExitStack, setting: tuple[str, ...] = ()
) -> Lab:
    """Where triage runs plans, with fresh targets of ``setting`` where ``rig`` can start them; ``stack`` closes it."""
    lab = Lab(live, partial(rig.start_fresh, setting=setting) if rig.can_start else None, start_pool)
    stack.callback(lab.close)
    return lab
