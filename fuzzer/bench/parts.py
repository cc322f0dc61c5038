"""The parts of the benchmark by name; a part is one module and one line here."""

from __future__ import annotations

from fuzzer.bench import (
    baselines,
    cold_start,
    duplicates,
    false_alarms,
    growth,
    mutation,
    quantised,
    sensitivity,
    stale_source,
    throughput,
    vocabulary,
    wheels,
)
from fuzzer.bench.card import Measure

Parts = dict[str, tuple[str, Measure]]

PARTS: Parts = {
    "mutation": ("how many planted bugs are found, how fast, how small", mutation.measure),
    "mutation-bf16": ("the same where sound answers differ by rounding too", mutation.measure_in_bf16),
    "baselines": ("how many of them less thoughtful sequences reach", baselines.measure),
    "false-alarms": ("whether sound servers are blamed", false_alarms.measure),
    "throughput": ("requests a second beside a bare HTTP loop, own CPU and memory", throughput.measure),
    "wheels": ("public llama-server bugs on the wheels that have them", wheels.measure),
    "cold-start": ("seconds from the command to a confirmed, minimal finding", cold_start.measure),
    "growth": ("speed, CPU and memory by plan length, overlap and campaign length", growth.measure),
    "vocabulary": ("what comparing lists of 128k logprobs costs", vocabulary.measure),
    "sensitivity": ("the smallest stale scale step that is told from rounding", sensitivity.measure),
    "stale-source": ("how often the step whose state was reused is named", stale_source.measure),
    "duplicates": ("whether one bug found from many seeds is one finding", duplicates.measure),
    "quantised": ("a real, quantised model: its bug found, its noise not blamed", quantised.measure),
}
"""In the order in which they run: a line for a reader, and how it is measured."""

QUICK = ("mutation", "false-alarms", "throughput")
"""Parts for a look in a few minutes."""
