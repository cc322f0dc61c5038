"""Public bugs against the wheels that have them: found by their scenario, by a default campaign, absent once fixed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from fuzzer.bench.card import Figure, Part, Setting
from fuzzer.bench.public_bugs import PUBLIC_BUGS, PublicBug, Sighting
from fuzzer.bench.wheel_folders import wheel_folder
from fuzzer.interrupts import Interruption
from fuzzer.options import RunOptions, ServerOptions
from fuzzer.rig import Rig
from fuzzer.run import Run
from reports.record import RunRecord


class Cell(msgspec.Struct, frozen=True):
    """One bug on one wheel. A sighting is None where it was not met, ``campaign`` also where none was run."""

    bug: PublicBug
    wheel: str
    scenario: Sighting | None
    campaign: Sighting | None
    steps: int
    """Operations run by both, where the bug was not met."""

    @property
    def affected(self) -> bool:
        """Whether the bug is there."""
        return self.wheel in self.bug.affected


def measure(setting: Setting) -> Part:
    """Each bug on its wheels; the short form looks on the first affected one, by its scenario alone."""
    cells = list(_cells(setting, PUBLIC_BUGS))
    return Part(
        name="wheels",
        command=setting.command("wheels"),
        figures=_figures(cells, full=setting.full),
        columns=["report", "what", "wheel", "model", "by its scenario", "operations", "by a default campaign"],
        rows=[_row(cell, full=setting.full) for cell in cells],
    )


def _cells(setting: Setting, bugs: Sequence[PublicBug]) -> Iterator[Cell]:
    campaigns = _Campaigns(setting, bugs)
    for bug in bugs:
        for wheel in _wheels(bug, full=setting.full):
            record = _run(setting, wheel, bug, [bug], bug.scenario)
            campaign = campaigns.record(wheel, bug) if setting.full else None
            cell = Cell(
                bug,
                wheel,
                bug.seen(record),
                bug.seen(campaign) if campaign is not None else None,
                record.steps + (campaign.steps if campaign is not None else 0),
            )
            setting.tell(" ".join(_row(cell, full=setting.full)))
            yield cell


def _wheels(bug: PublicBug, *, full: bool) -> tuple[str, ...]:
    if not full:
        return bug.affected[:1]
    return (*bug.affected, *([bug.clean] if bug.clean is not None else []))


class _Campaigns:
    """Default campaigns, one for each wheel and model, in which all bugs of both are looked for at once."""

    def __init__(self, setting: Setting, bugs: Sequence[PublicBug]) -> None:
        self._setting = setting
        self._bugs = bugs
        self._records: dict[tuple[str, str, tuple[str, ...] | None], RunRecord] = {}

    def record(self, wheel: str, bug: PublicBug) -> RunRecord:
        """The record of the campaign in which a bug is looked for, run when it is first asked for."""
        key = wheel, bug.tiny, bug.adapters
        if key not in self._records:
            alike = [one for one in self._bugs if (one.tiny, one.adapters) == (bug.tiny, bug.adapters)]
            absent = any(one.clean == wheel for one in alike)
            # One that shows a bug to be absent goes on to its end.
            self._records[key] = _run(self._setting, wheel, bug, [] if absent else alike, None)
        return self._records[key]


class _Sought(Interruption):
    """Ends a run once all of some bugs have been met; at its end only where there are none."""

    def __init__(self, bugs: Sequence[PublicBug]) -> None:
        super().__init__()
        self._bugs = bugs

    def look(self, record: RunRecord) -> None:
        """Take note of what a run has met so far."""
        self.asked = bool(self._bugs) and all(bug.seen(record) is not None for bug in self._bugs)


def _run(setting: Setting, wheel: str, bug: PublicBug, bugs: Sequence[PublicBug], scenario: str | None) -> RunRecord:
    """A run of the fuzzer on one wheel, with the model that ``bug`` needs, up to where it has met ``bugs``."""
    servers = ServerOptions(tiny=bug.tiny, adapters=bug.adapters, wheel=wheel_folder(wheel))
    sought = _Sought([bug for bug in bugs if wheel in bug.affected])
    options = RunOptions(
        servers=servers,
        time_s=setting.time_s,
        seed=setting.seed,
        scenarios=(scenario,) if scenario is not None else (),
        out=setting.folder,
    )
    run = Run(options, Rig(servers), sought, lambda event: None, sought.look)
    try:
        return run.execute()
    except KeyboardInterrupt:
        if not sought.asked:
            raise
        return run.record


def _figures(cells: Sequence[Cell], *, full: bool) -> list[Figure]:
    there = [cell for cell in cells if cell.affected]
    gone = [cell for cell in cells if not cell.affected]
    figures = [_found("public bugs found by their scenario", [cell.scenario for cell in there])]
    if full:
        figures.append(_found("public bugs found by a default campaign", [cell.campaign for cell in there]))
        blamed = [cell for cell in gone if cell.scenario is not None or cell.campaign is not None]
        figures.append(
            Figure(
                what="fixed bugs absent on the fixed wheel",
                measured=f"{len(gone) - len(blamed)} of {len(gone)}",
                goal="all",
                met=not blamed,
            )
        )
    return figures


def _found(what: str, sightings: Sequence[Sighting | None]) -> Figure:
    found = sum(1 for sighting in sightings if sighting is not None)
    return Figure(what=what, measured=f"{found} of {len(sightings)}", goal="all", met=found == len(sightings))


def _row(cell: Cell, *, full: bool) -> list[str]:
    bug, sighting = cell.bug, cell.scenario or cell.campaign
    return [
        bug.report,
        bug.what,
        cell.wheel,
        bug.tiny,
        _words(cell, cell.scenario),
        str(len(sighting.plan)) if sighting is not None else "",
        _words(cell, cell.campaign) if full else "",
    ]


def _words(cell: Cell, sighting: Sighting | None) -> str:
    if sighting is not None:
        return f"{sighting.seconds:.1f} s"
    return "not found" if cell.affected else f"absent in {cell.steps} steps"
