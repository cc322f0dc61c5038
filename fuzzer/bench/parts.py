"""The parts of the benchmark by name; a part is one module and one line here."""

from __future__ import annotations

from fuzzer.bench import cold_start, false_alarms, mutation, throughput
from fuzzer.bench.card import Measure

Parts = dict[str, tuple[str, Measure]]

PARTS: Parts = {
    "mutation": ("how many planted bugs are found, how fast, how small", mutation.measure),
    "false-alarms": ("whether sound servers are blamed", false_alarms.measure),
    "throughput": ("requests a second beside a bare HTTP loop, own CPU and memory", throughput.measure),
    "cold-start": ("seconds from the command to a confirmed, minimal finding", cold_start.measure),
}
"""In the order in which they run: a line for a reader, and how it is measured."""

QUICK = ("mutation", "false-alarms", "throughput")
"""Parts for a look in a few minutes."""
