"""The terminal: what is tested, one live line, each finding's story, a summary. Plain text where nobody watches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from reports import events
from reports.escaping import printable
from reports.prose import by_reason, counted, others_in_words
from reports.record import FindingRecord, RoundingRecord, RunRecord, SuspectRecord, TargetRecord


class Terminal:
    """Consumer of a run's events; ``out`` is where findings are kept, for the replay line."""

    def __init__(self, console: Console, out: Path) -> None:
        self._console = console
        self._out = out
        self._suspects = 0
        self._findings = 0
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._shown_at = 0.0
        self._began_exploring: float | None = None

    def __enter__(self) -> Terminal:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def event(self, event: events.Event) -> None:
        """Show one event."""
        match event:
            case events.Started():
                self._print(Text(printable(event.what), style="dim"))
            case events.Probed():
                self._began_exploring = event.at
                self._print(probe_block(event))
            case events.Explored():
                self._progress(event)
            case events.Suspected():
                self._suspects += 1
            case events.Found():
                self._findings += 1
                self._print(finding_block(event.finding, self._out))
            case events.Dropped():
                self._print(suspect_block(event.suspect))
            case events.Restarted() | events.Shared():
                self._print(Text(printable(event.why), style="yellow"))
            case _:
                pass

    def summary(self, record: RunRecord) -> None:
        """Show how the run ended."""
        if self._live is not None:
            self._live.stop()
        self._print(summary_block(record, self._out))

    def _print(self, block: RenderableType) -> None:
        self._console.print(block, highlight=False, soft_wrap=True)

    def _progress(self, event: events.Explored) -> None:
        if self._live is None or event.at - self._shown_at < 0.1:
            return
        self._shown_at = event.at
        exploring = event.at - (self._began_exploring or 0.0)
        rate = event.target_requests / exploring if exploring > 0 else 0.0
        line = (
            f"{event.at:6.1f} s  {event.steps} steps  {rate:.0f} requests/s  {event.hits} reuse hits  "
            f"{self._suspects} suspects  {self._findings} findings"
        )
        self._live.update(Text(line, style="cyan"), refresh=True)


def probe_block(event: events.Probed) -> Text:
    """What is compared with what, and how exactly."""
    target, reference = event.target, event.reference
    lines = [
        ("target", f"{target.engine} {target.version}  {target.url or ''}".rstrip()),
        ("", target.launch or ""),
        ("reference", f"{reference.mode}: {reference.engine} {reference.version}"),
        ("", reference.launch or ""),
        ("can", capabilities_in_words(target)),
        ("numerics", event.numerics),
        ("bound", bounds_in_words(event)),
        ("", f"measured {event.measured}, re-used" if event.measured else ""),
        ("seed", str(event.seed)),
    ]
    return Text("\n".join(f"  {name:<10} {printable(value)}" for name, value in lines if value) + "\n")


def capabilities_in_words(target: TargetRecord) -> str:
    """What the target lets us ask and see."""
    can = target.capabilities
    words = [f"top-{can.top_logprobs} logprobs" if can.top_logprobs else "no logprobs"]
    words += [f"{can.adapters} adapters, scale a request"] if can.adapters and can.request_scales else []
    words += [f"{can.adapters} adapters by name"] if can.adapters and can.adapter_names else []
    words += ["tells reuse"] if can.cached_counts else ["does not tell reuse"]
    words += ["reuses whole entries only"] if can.whole_entries else []
    words += ["bypass"] if can.bypass else []
    words += [f"{can.slots} slot" if can.slots == 1 else f"{can.slots} slots", f"context {can.context}"]
    return ", ".join(words)


def bounds_in_words(event: events.Probed) -> str:
    """The bound of each class with what it was measured on."""
    return ", ".join(
        f"{bound.situation} {bound.bound:.1e} ({bound.samples} samples, largest {bound.largest:.1e})"
        for bound in event.noise.bounds
    )


def finding_block(finding: FindingRecord, out: Path) -> Text:
    """A finding's story."""
    text = Text()
    known = f"known ({printable(finding.known_reason)})  " if finding.known else ""
    text.append(f"FINDING {finding.id}  {finding.title}", style="bold red")
    text.append(f"        {known}{proof_in_words(finding)}\n")
    for number, line in enumerate(finding.story, 1):
        text.append(f"  {number}  {printable(line)}\n", style="bold" if number == finding.wrong else "")
    for line in finding.explanation:
        text.append(f"  {printable(line)}\n")
    text.append(f"  stalefuzz replay {out / 'findings' / finding.id}.json\n", style="green")
    return text


def proof_in_words(finding: FindingRecord) -> str:
    """How sure it is, in a line."""
    words = [f"{finding.reproduced.k} of {finding.reproduced.n}"]
    words += ["right without history"] if finding.alone.clean else []
    words += ["reuse witnessed"] if finding.reuse_witnessed else ["no reuse reported"]
    return " · ".join(words)


def baseline_block(expired: Sequence[str], skipped: Sequence[str]) -> Text:
    """What of the baseline and of the corpus does not count."""
    lines = [f"baseline entry has expired and no longer passes: {printable(entry)}" for entry in expired]
    lines += [f"skipped: {printable(why)}" for why in skipped]
    return Text("\n".join(lines), style="yellow")


def suspect_block(suspect: SuspectRecord) -> Text:
    """A suspect that is no finding, and why."""
    return Text(f"suspect left unconfirmed at step {suspect.step}: {printable(suspect.reason)}", style="yellow")


def summary_block(record: RunRecord, out: Path) -> Text:
    """Verdict, reasons, counts, seed."""
    style = {"clean": "bold green", "finding": "bold red"}.get(record.verdict, "bold yellow")
    text = Text()
    text.append(f"{record.verdict.upper()}", style=style)
    text.append(f"  {counts_in_words(record)}\n")
    for reason in record.reasons:
        text.append(f"  {printable(reason)}\n")
    for line in others_in_words(record):
        text.append(f"  {printable(line)}\n", style="yellow")
    for why, what in by_reason(record.not_exercised).items():
        text.append(f"  not exercised: {printable(', '.join(what))}: {printable(why)}\n")
    if record.rounding.suspects:
        text.append(f"  {rounding_in_words(record.rounding)}\n")
    for name in record.baseline_fixed:
        text.append(f"  fixed: known finding {name} no longer reproduces; take it out of the baseline\n", style="green")
    if record.baseline_unseen:
        text.append(f"  known findings that this run did not meet: {', '.join(record.baseline_unseen)}\n")
    text.append(f"  {out / 'report.html'}\n")
    text.append(f"  seed {record.seed}; {out / 'run.json'}")
    return text


def rounding_in_words(rounding: RoundingRecord) -> str:
    """What was taken for rounding: a real difference as small would not have been told from it."""
    return (
        f"{rounding.suspects} differences beyond the bound, of up to {rounding.largest:.2g}, turned out to be "
        "rounding; a stale state that moves logprobs by less is seen by reuse accounting only"
    )


def counts_in_words(record: RunRecord) -> str:
    """How much was done, in a line."""
    share = 100 * record.reuse.hits / record.steps if record.steps else 0.0
    return (
        f"{counted(len(record.findings), 'finding')}, {counted(len(record.suspects), 'suspect')} in "
        f"{counted(record.steps, 'step')}, {record.elapsed_s:.1f} s; {counted(record.reuse.hits, 'reuse hit')} "
        f"({share:.0f} %), {counted(record.reuse.tokens, 'token')} reused; requests: {record.requests.target} target, "
        f"{record.requests.reference} reference"
    )
