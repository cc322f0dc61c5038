"""Mutation score: each planted bug of the zoo against the default campaign.

A mutant that is not found is listed as such, never left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fuzzer.bench.campaigns import campaign
from fuzzer.bench.card import Figure, Part, Plot, Setting
from fuzzer.bench.ecdf import ecdf
from fuzzer.bench.naming import named_rightly
from fuzzer.calibration import Numerics
from fuzzer.errors import UsageError
from fuzzer.options import ServerOptions
from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.catalogue import MUTANTS
from fuzzer.zoo.mutants import Mutant
from reports.record import FindingRecord

_FEW = (
    Bug.SLOT_IGNORES_SCALES,
    Bug.SCALE_TRUNCATED,
    Bug.GUARD_COMPARES_SLOT_HISTORY,
    Bug.CHECKPOINT_PAST_PREFIX,
    Bug.RECURRENT_TRIM_IGNORED,
    Bug.POSITION_NOT_REWOUND,
    Bug.RAM_IGNORES_ENVIRONMENT,
    Bug.PENALTIES_LEFT_IN_ROW,
)
"""Mutants of as many kinds, for a look in minutes."""
_SLACK = 1
"""Operations that a minimal plan may have beyond the shortest possible."""
_MEDIAN_S = 5.0
_REDUCING = 100


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """How one mutant fared; all that tells of the finding is None or empty where there is none."""

    name: str
    kind: str
    shortest: int
    seconds: float | None = None
    """Until the finding was confirmed, from the start of the servers on."""
    suspected_s: float | None = None
    """Until it first diverged."""
    requests: int | None = None
    """To the target, until it first diverged."""
    reducing: int | None = None
    """Requests that reducing took."""
    operations: int | None = None
    oracle: str = ""
    named: str = ""
    """The kind that the finding was given."""
    rightly: bool = False
    """Whether that is the mutant's kind."""

    @property
    def found(self) -> bool:
        """Whether there was a confirmed finding in time."""
        return self.seconds is not None

    @property
    def minimal(self) -> bool:
        """Whether the plan is at most one operation longer than the shortest possible."""
        return self.operations is not None and self.operations <= self.shortest + _SLACK

    @property
    def words(self) -> str:
        """The outcome in a few words."""
        if self.seconds is None:
            return "NOT FOUND"
        return f"found after {self.seconds:.1f} s, {self.operations} operations (shortest possible {self.shortest})"


def measure(setting: Setting) -> Part:
    """Each mutant against the default campaign."""
    return _measured(setting, "mutation")


def measure_in_bf16(setting: Setting) -> Part:
    """The same in the zoo's bf16, where sound answers differ too and a finding has to be told from rounding."""
    return _measured(setting, "mutation-bf16", bf16=True)


def _measured(setting: Setting, part: str, *, bf16: bool = False) -> Part:
    scores: list[Score] = []
    for mutant in chosen(setting):
        ran = score(mutant, time_s=setting.time_s, seed=setting.seed, folder=setting.folder, bf16=bf16)
        scores.append(ran)
        setting.tell(f"{mutant.name}: {ran.words}")
    card = figures(scores, setting.time_s)
    return Part(
        name=part,
        command=setting.command(part),
        figures=[msgspec.structs.replace(one, what=f"in bf16: {one.what}") for one in card] if bf16 else card,
        columns=list(_COLUMNS),
        rows=[row(one) for one in scores],
        plots=[_plot(scores, part)],
    )


_COLUMNS = ("mutant", "kind", "found", "s", "diverged, s", "requests", "reducing", "operations", "shortest", "named")


def servers_of(mutant: Mutant, *, bf16: bool = False) -> ServerOptions:
    """How a server with this bug is launched, in exact numerics or in 16 bits."""
    if bf16:
        flags = (*mutant.flags(), "--numerics", "bf16")
        return ServerOptions(launch="zoo", numerics=Numerics.DEFAULT, server_flags=flags)
    return ServerOptions(launch="zoo", server_flags=mutant.flags())


def chosen(setting: Setting) -> list[Mutant]:
    """The mutants named, all of them in the long form, a few otherwise; raises UsageError for an unknown name."""
    unknown = [name for name in setting.mutants if name not in MUTANTS]
    if unknown:
        raise UsageError(f"there is no planted bug called {unknown[0]!r}; `stalefuzz zoo list` names them")
    names = [Bug(name) for name in setting.mutants] or (MUTANTS if setting.full else _FEW)
    return [MUTANTS[name] for name in names]


def score(mutant: Mutant, *, time_s: float, seed: int, folder: Path, bf16: bool = False) -> Score:
    """Fuzz a server with one planted bug until the first finding."""
    ran = campaign(servers_of(mutant, bf16=bf16), time_s=time_s, seed=seed, folder=folder, fail_fast=True)
    missed = Score(name=mutant.name, kind=mutant.kind, shortest=mutant.operations)
    finding = next(iter(ran.record.findings), None)
    return missed if finding is None else _found(missed, mutant, finding, ran.requests_to_suspect)


def _found(missed: Score, mutant: Mutant, finding: FindingRecord, requests: int | None) -> Score:
    return msgspec.structs.replace(
        missed,
        seconds=finding.found_s,
        suspected_s=finding.suspected_s,
        requests=requests,
        reducing=finding.reducing_requests,
        operations=finding.operations,
        oracle=finding.oracle,
        named=finding.kind,
        rightly=named_rightly(mutant.kind, finding.kind),
    )


def figures(scores: Sequence[Score], time_s: float) -> list[Figure]:
    """The lines of the score card."""
    found = [one for one in scores if one.found]
    missed = ", ".join(one.name for one in scores if not one.found)
    minimal = sum(1 for one in found if one.minimal)
    rightly = sum(1 for one in found if one.rightly)
    seconds = median([one.seconds for one in found])
    reducing = median([one.reducing for one in found])
    return [
        Figure(
            what=f"planted bugs found within {time_s:g} s each",
            measured=f"{len(found)} of {len(scores)}" + (f"; not found: {missed}" if missed else ""),
            goal="all",
            met=not missed,
        ),
        Figure(
            what="seconds to a confirmed finding, median of those found",
            measured=shown(seconds, " s"),
            goal=f"under {_MEDIAN_S:g} s",
            met=seconds is not None and seconds < _MEDIAN_S,
        ),
        Figure(
            what="seconds to its first divergence, which baselines are held against, median",
            measured=shown(median([one.suspected_s for one in found]), " s"),
        ),
        Figure(
            what="minimal plans at most one operation longer than the shortest possible",
            measured=f"{minimal} of {len(found)}",
            goal="all",
            met=minimal == len(found),
        ),
        Figure(what="kind named rightly", measured=f"{rightly} of {len(found)}"),
        Figure(
            what="requests to the first divergence, median", measured=shown(median([one.requests for one in found]))
        ),
        Figure(
            what="requests to reduce a finding, median",
            measured=shown(reducing),
            goal=f"at most {_REDUCING}",
            met=reducing is not None and reducing <= _REDUCING,
        ),
    ]


def row(one: Score) -> list[str]:
    """One mutant's line of the table."""
    named = f"{one.named}{'' if one.rightly or not one.named else ' (another kind)'}"
    found = "yes" if one.found else "NO"
    times = [shown(one.seconds), shown(one.suspected_s)]
    counts = [shown(one.requests), shown(one.reducing), shown(one.operations), str(one.shortest)]
    return [one.name, one.kind, found, *times, *counts, named]


def median(values: Sequence[float | None]) -> float | None:
    """The median of what was measured; None where nothing was."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def shown(value: float | None, unit: str = "") -> str:
    """A number with at most one decimal, or a dash."""
    if value is None:
        return "-"
    return f"{round(value, 1):g}{unit}"


def _plot(scores: Sequence[Score], part: str) -> Plot:
    series = [
        ecdf("a confirmed, minimal finding", [one.seconds for one in scores]),
        ecdf("a first divergence", [one.suspected_s for one in scores]),
    ]
    return Plot(
        name=part,
        title="Planted bugs found over time",
        x="seconds from the start of the servers",
        y="share of the planted bugs",
        series=series,
        log_x=True,
    )
