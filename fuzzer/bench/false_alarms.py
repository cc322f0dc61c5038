"""False alarms: the default campaign on sound servers, which must not be blamed.

The zoo without a planted bug, in exact numerics and in the bf16 profile, whose bits depend on the shape of the batch;
and the real llama-server on a dense model without adapters, where nothing is known to be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fuzzer.bench.campaigns import campaign
from fuzzer.bench.card import Figure, Part, Setting
from fuzzer.bench.memory import resident_mb
from fuzzer.calibration import Numerics
from fuzzer.options import ServerOptions
from fuzzer.zoo.model import Family
from fuzzer.zoo.settings import Flavour

_STEPS = 100_000
"""For each group of servers in the long form, shared out evenly ..."""
_FEW_STEPS = 1_500
"""... and in the short one."""
_UNBOUNDED_S = 7 * 24 * 3600.0
"""The steps end these runs, not the clock."""


class Sound(msgspec.Struct, frozen=True):
    """A server on which nothing is wrong, in a few words, and how it is had."""

    name: str
    servers: ServerOptions


class Alarms(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign on a sound server gave."""

    name: str
    steps: int
    hits: int
    suspects: list[str]
    findings: list[str]
    reasons: list[str]
    """Why the run could not judge; none where it could."""
    memory_mb: float
    """Growth of this process over the run."""


def measure(setting: Setting) -> Part:
    """Every group of sound servers, each over its share of the steps."""
    steps = _STEPS if setting.full else _FEW_STEPS
    figures: list[Figure] = []
    every: list[Alarms] = []
    for group, servers in GROUPS.items():
        alarms = [_told(setting, alarms_on(sound, setting, max(1, steps // len(servers)))) for sound in servers]
        figures.append(_figure(group, alarms))
        every += alarms
    return Part(
        name="false-alarms",
        command=setting.command("false-alarms"),
        figures=[*figures, _memory(every)],
        columns=["server", "steps", "with reuse", "suspects", "findings", "could not judge", "memory, MB"],
        rows=[_row(one) for one in every],
    )


def alarms_on(sound: Sound, setting: Setting, steps: int) -> Alarms:
    """The default campaign over ``steps`` operations of one server."""
    before = resident_mb()
    record = campaign(
        sound.servers, time_s=_UNBOUNDED_S, seed=setting.seed, folder=setting.folder, max_steps=steps
    ).record
    return Alarms(
        name=sound.name,
        steps=record.steps,
        hits=record.reuse.hits,
        suspects=[suspect.reason for suspect in record.suspects],
        findings=[finding.title for finding in record.findings],
        reasons=record.reasons,
        memory_mb=resident_mb() - before,
    )


def _told(setting: Setting, alarms: Alarms) -> Alarms:
    blamed = f"{len(alarms.suspects)} suspects, {len(alarms.findings)} findings"
    setting.tell(f"{alarms.name}: {alarms.steps} steps, {alarms.hits} with reuse, {blamed}")
    return alarms


def _figure(group: str, alarms: Sequence[Alarms]) -> Figure:
    steps, hits = sum(one.steps for one in alarms), sum(one.hits for one in alarms)
    findings, suspects = sum(len(one.findings) for one in alarms), sum(len(one.suspects) for one in alarms)
    open_runs = sum(1 for one in alarms if one.reasons)
    unsure = f"; {open_runs} of {len(alarms)} runs could not judge" if open_runs else ""
    return Figure(
        what=f"false alarms on sound servers: {group}",
        measured=f"{findings} findings and {suspects} suspects in {steps:,} steps, {hits:,} with reuse{unsure}",
        goal="none",
        met=not (open_runs or findings or suspects),
    )


def _memory(alarms: Sequence[Alarms]) -> Figure:
    most = max(alarms, key=lambda one: one.memory_mb)
    return Figure(
        what=f"own memory, largest growth over one of these {len(alarms)} runs",
        measured=f"{most.memory_mb:+.1f} MB over {most.steps:,} steps",
    )


def _row(one: Alarms) -> list[str]:
    suspects = "; ".join(one.suspects) or "0"
    findings = "; ".join(one.findings) or "0"
    reasons = "; ".join(one.reasons) or "-"
    return [one.name, str(one.steps), str(one.hits), suspects, findings, reasons, f"{one.memory_mb:+.1f}"]


def _zoo(how: str, numerics: Numerics, *flags: str) -> list[Sound]:
    return [
        Sound(
            f"zoo {flavour} {family}, {how}, {words}",
            ServerOptions(
                launch="zoo",
                numerics=numerics,
                server_flags=("--flavour", flavour, "--family", family, "--rows", rows, *flags),
            ),
        )
        for flavour, rows, words in ((Flavour.LLAMA, "2", "2 slots"), (Flavour.VLLM, "8", "8 rows"))
        for family in Family
    ]


def _llama(numerics: Numerics, slots: int) -> Sound:
    words = f"llama-server dense, no adapter, {numerics}, {slots} slot{'s' if slots > 1 else ''}"
    return Sound(words, ServerOptions(adapters=(), numerics=numerics, server_flags=("-np", str(slots))))


GROUPS: dict[str, list[Sound]] = {
    "zoo, exact": _zoo("exact", Numerics.EXACT),
    "zoo, bf16": _zoo("bf16", Numerics.DEFAULT, "--numerics", "bf16"),
    "llama-server": [_llama(numerics, slots) for numerics in Numerics for slots in (1, 4)],
}
"""Sound servers; each group shares out its steps evenly."""
