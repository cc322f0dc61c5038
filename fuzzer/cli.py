"""The command line: words in, options out, exit status back."""

from __future__ import annotations

import secrets
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from fuzzer.cli_values import seconds
from fuzzer.errors import StalefuzzError, UsageError
from fuzzer.exit_status import Exit
from fuzzer.options import RunOptions, ServerOptions


class Duration(click.ParamType[float]):
    """``90``, ``90s``, ``2m``, ``1h``, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds; raises click.BadParameter."""
        if isinstance(value, float):
            return value
        given = seconds(str(value))
        if given is None:
            self.fail(f"{value!r} is no duration; write 90s, 2m or 1h", param, ctx)
        return given


class ServerCommand(click.Command):
    """A command that starts a server: the words after ``--`` are the server's own flags and stay as they are."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Click's parsing of the words before ``--``; raises UsageError for a server flag among them."""
        at = args.index("--") if "--" in args else len(args)
        ctx.params["server_flags"] = tuple(args[at + 1 :])
        try:
            return super().parse_args(ctx, args[:at])
        except click.NoSuchOption as error:
            raise _misplaced(error) from None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Click's pieces and ours."""
        return [*super().collect_usage_pieces(ctx), "[-- SERVER FLAGS]"]


def _misplaced(error: click.NoSuchOption) -> Exception:
    from fuzzer.servers.llama_flag_table import BY_SPELLING

    if error.option_name not in BY_SPELLING:
        return error
    return UsageError(f"{error.option_name} is a flag of the server's: write it at the end, after a -- of its own")


def _server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which servers to use; the same for run, replay and probe."""
    for option in reversed(_SERVER_OPTIONS):
        command = option(command)
    return command


_SERVER_OPTIONS: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
    click.option(
        "--launch", metavar="ENGINE", help="Launch this engine (default: llama.cpp, from the xllamacpp wheel)."
    ),
    click.option("--target", metavar="URL", help="Test the server that runs at URL."),
    click.option("--binary", type=click.Path(path_type=Path), help="Launch this llama-server executable."),
    click.option("--engine", metavar="NAME", help="Adapter for --target; detected when left out."),
    click.option("--reference", metavar="URL|bypass", help="Where right answers come from (with --target)."),
    click.option("--model", type=click.Path(path_type=Path), help="GGUF to launch with."),
    click.option("--tiny", metavar="NAME", help="Tiny random model to launch with (default: dense)."),
    click.option("--adapter", "adapters", multiple=True, metavar="PATH|none", help="LoRA adapter; repeatable."),
    click.option(
        "--allow-admin",
        is_flag=True,
        help="With --target: also what its other users notice (flush, adapters loaded over each other).",
    ),
    click.option("--max-inflight", type=click.IntRange(min=1), metavar="N", help="Requests at once on a --target."),
    click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="R", help="Requests a second."),
    click.option("--ca-file", type=click.Path(path_type=Path), help="Certificates to trust for https."),
    click.option("--numerics", type=click.Choice(["exact", "default"]), help="exact is the default for --tiny."),
    click.option("--recalibrate", is_flag=True, help="Measure rounding anew, whatever an earlier command kept."),
]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="stalefuzz")
def cli() -> None:
    """Find answers that an LLM inference server computed from stale state."""


@cli.command(cls=ServerCommand)
@_server_options
@click.option("--time", "time_s", type=Duration(), default="60s", show_default=True, help="Bounds the whole command.")
@click.option("--max-steps", type=click.IntRange(min=1), help="Stop after this many operations on the target.")
@click.option("-x", "--fail-fast", is_flag=True, help="Stop at the first confirmed new finding.")
@click.option("--seed", type=click.IntRange(min=0), help="The same seed gives the same plans.")
@click.option("--scenario", "scenarios", multiple=True, metavar="NAME", help="Only this scenario; repeatable.")
@click.option("--out", type=click.Path(path_type=Path), default="stalefuzz-out", show_default=True)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="stalefuzz.toml; flags win over it.")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="FILE", help="Known findings: reported, passing.")
@click.option("--corpus", type=click.Path(path_type=Path), metavar="DIR", help="Plans and findings to replay first.")
@click.option("--resume", type=click.Path(path_type=Path), metavar="DIR", help="Go on with the run in DIR.")
@click.option("--redact", is_flag=True, help="Shapes in place of prompts and tokens, everywhere.")
@click.pass_context
def run(
    context: click.Context,
    /,
    *,
    time_s: float,
    max_steps: int | None,
    fail_fast: bool,
    seed: int | None,
    scenarios: tuple[str, ...],
    out: Path,
    config: Path | None,
    baseline: Path | None,
    corpus: Path | None,
    resume: Path | None,
    redact: bool,
    **servers: Any,
) -> None:
    """Fuzz a server; with no argument, the embedded llama-server on a tiny random model with two adapters."""
    options = RunOptions(
        servers=_servers(**servers),
        time_s=time_s,
        max_steps=max_steps,
        fail_fast=fail_fast,
        seed=secrets.randbelow(2**31) if seed is None else seed,
        scenarios=scenarios,
        out=resume or out,
        baseline=baseline,
        corpus=corpus,
        resume=resume is not None,
        redact=redact,
    )
    if config is None:
        _warm_up(options.servers)
    from fuzzer.commands.run import run_command

    if config is None:
        sys.exit(run_command(options))
    from fuzzer.configuration import cells, read_configuration, with_configuration

    file = read_configuration(config)
    options = with_configuration(options, _given(context), config, file)
    sys.exit(run_command(options, cells(file, config, options.servers)))


def _given(context: click.Context) -> frozenset[str]:
    """Parameters that the command line sets."""
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    return frozenset(given | ({"out"} if "resume" in given else set()))


_PROFILES = click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="stalefuzz.toml with profiles for --engine."
)


@cli.command(cls=ServerCommand)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@_server_options
@_PROFILES
def replay(files: tuple[Path, ...], config: Path | None, **servers: Any) -> None:
    """Replay findings: REPRODUCED, FIXED or ERROR each. Server flags come before those that a finding records."""
    from fuzzer.commands.replay import replay_command

    sys.exit(replay_command(files, _profiled(_servers(**servers), config)))


@cli.command(cls=ServerCommand)
@_server_options
@_PROFILES
def probe(config: Path | None, **servers: Any) -> None:
    """Say what a target can do, how exactly it computes, and how large its rounding is."""
    from fuzzer.commands.probe import probe_command

    sys.exit(probe_command(_profiled(_servers(**servers), config)))


@cli.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--redact", is_flag=True, help="Shapes in place of prompts and tokens, in run.json too.")
def report(folder: Path, *, redact: bool) -> None:
    """Render the reports of a run again, from the run.json in DIR."""
    from fuzzer.commands.report import report_command

    sys.exit(report_command(folder, redact=redact))


@cli.command()
@click.argument("first", type=click.Path(path_type=Path), metavar="RUN1")
@click.argument("second", type=click.Path(path_type=Path), metavar="RUN2")
def compare(first: Path, second: Path) -> None:
    """Findings of RUN2 against RUN1: new, gone, still there. Exit status 1: something new; 3: RUN2 inconclusive."""
    from fuzzer.commands.compare import compare_command

    sys.exit(compare_command(first, second))


@cli.command()
def scenarios() -> None:
    """List the named scenarios, with the public bugs that each stands for."""
    from fuzzer.commands.scenarios import scenarios_command

    scenarios_command()


@cli.group()
def zoo() -> None:
    """Servers with planted bugs, to see what stalefuzz finds: list, serve."""


@zoo.command(name="list")
def list_bugs() -> None:
    """List the planted bugs, with the public report that each follows."""
    from fuzzer.commands.zoo import list_command

    sys.exit(list_command())


@zoo.command(cls=ServerCommand)
@click.option("--bug", metavar="NAME", help="The planted bug; none when left out.")
def serve(bug: str | None, server_flags: tuple[str, ...]) -> None:
    """Serve a zoo model on a free loopback port until standard input ends."""
    from fuzzer.commands.zoo import serve_command

    sys.exit(serve_command(bug, server_flags))


@cli.command()
@click.argument("parts", nargs=-1, metavar="[PART]...")
@click.option(
    "--quick", is_flag=True, help="A look in a few minutes: a few planted bugs and sound servers, throughput."
)
@click.option("--full", is_flag=True, help="The long form of each part, up to hours.")
@click.option("--time", "time_s", type=Duration(), default="60s", show_default=True, help="For each planted bug.")
@click.option("--mutant", "mutants", multiple=True, metavar="NAME", help="Only this planted bug; repeatable.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default="stalefuzz-out", show_default=True)
def bench(**options: Any) -> None:
    """Measure the fuzzer: all parts, or those named. Exit status 1: a goal was missed.

    Results are added to the bench.json in --out.
    """
    from fuzzer.commands.bench import BenchOptions, bench_command

    sys.exit(bench_command(BenchOptions(**options)))


def _servers(
    *, adapters: tuple[str, ...], numerics: str | None, server_flags: tuple[str, ...], **rest: Any
) -> ServerOptions:
    from fuzzer.calibration import Numerics

    if "none" in adapters and len(adapters) > 1:
        raise UsageError("--adapter none means no adapter at all: leave the others out")
    chosen = () if adapters == ("none",) else adapters or None
    return ServerOptions(
        adapters=chosen, numerics=Numerics(numerics) if numerics else None, server_flags=server_flags, **rest
    )


def _warm_up(options: ServerOptions) -> None:
    """Have the embedded server imported by another process, while this one imports what it needs itself."""
    from fuzzer.servers.child_environment import child_environment
    from fuzzer.servers.forking import prepare

    if options.target is None and options.binary is None and options.launch in (None, "llama.cpp"):
        prepare("fuzzer.servers.embedded", child_environment())


def _profiled(options: ServerOptions, config: Path | None) -> ServerOptions:
    """The options with the engines that a configuration describes."""
    if config is None:
        return options
    from fuzzer.configuration import read_configuration, with_profiles

    return with_profiles(options, read_configuration(config))


def main() -> NoReturn:
    """Entry point of the ``stalefuzz`` command: every way to end has its exit status."""
    try:
        # Click's own endings would say 1, a finding, for Ctrl-C.
        status = cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except StalefuzzError as error:
        click.echo(f"stalefuzz: {error}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stalefuzz: interrupted", err=True)
        sys.exit(Exit.INTERRUPTED)
    except Exception:
        # Python would say 1, a finding.
        traceback.print_exc()
        click.echo("stalefuzz: a fault of stalefuzz, which says nothing about the server; please report it", err=True)
        sys.exit(Exit.INCONCLUSIVE)
    sys.exit(status or Exit.CLEAN)


if __name__ == "__main__":
    main()
