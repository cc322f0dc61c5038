"""Scripts of findings that need more than one request after another, a count or tokens: against real servers."""

from __future__ import annotations

import shlex
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from making import ask, at_scales, path
from scripted import Case, scripts_in, zoo
from scripts import pytest_case, shell

from fuzzer.zoo.bugs import Bug
from scenarios.operations import (
    Abort,
    Await,
    Complete,
    Evict,
    Join,
    Reload,
    ReloadWeights,
    Restore,
    Sampling,
    Save,
    SetScales,
    Sleep,
    Start,
    Unload,
)
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment

LONG, SHORT, OTHER = path(0, ("a", 479)), path(1, ("b", 19)), path(2, ("c", 19))
MIDDLE = path(0, ("a", 39))
TUNED = ask(MIDDLE, 1.0)
CASES = {
    "beside-a-running-answer": Case(
        Bug.ONLY_FIRST_ROW_ZEROED,
        Plan((Start(prompt=path(0, ("a", 19)), tokens=300), Await(0, 1), ask(SHORT), ask(OTHER), Join(0))),
        4,
    ),
    "count-of-another-tenant": Case(
        Bug.SALT_TRUNCATED,
        Plan((Complete(prompt=LONG, salt="tenant-1"), Complete(prompt=LONG, salt="tenant-2"))),
        2,
        reusable=0,
    ),
    "grown-from-an-answer": Case(
        Bug.SAMPLED_TOKEN_PUBLISHED,
        Plan((ask(SHORT, tokens=4), ask(Prompt(1, (Segment("d", 2),), after=0, answer=4)))),
        2,
    ),
    "other-tokens": Case(
        Bug.MASK_LEFT_IN_ROW,
        Plan((Complete(prompt=path(0, ("a", 19)), sampling=Sampling.GRAMMAR), ask(SHORT, tokens=3))),
        2,
        tokens=True,
    ),
    "asleep": Case(Bug.SLEEP_KEEPS_HASHES, Plan((ask(MIDDLE), Sleep(), ask(MIDDLE))), 3),
    "other-weights": Case(Bug.WEIGHTS_RELOAD_KEEPS_BLOCKS, Plan((ask(MIDDLE), ReloadWeights(1), ask(MIDDLE))), 3),
    "adapter-replaced": Case(Bug.ADAPTER_VERSION_NOT_HASHED, Plan((TUNED, Reload(0, 1), TUNED)), 3),
    "adapter-unloaded": Case(Bug.ADAPTER_VERSION_RESTARTS, Plan((TUNED, Unload(0, 1), TUNED)), 3),
    "pushed-out": Case(Bug.HOST_IGNORES_ADAPTER, Plan((TUNED, Evict(3, 490), ask(MIDDLE))), 3),
    "restored": Case(
        Bug.FILE_IGNORES_ENVIRONMENT, Plan((ask(SHORT, 1.0), Save(0), Restore(0), Restore(0, 1), ask(SHORT, 0.5))), 5
    ),
    "global-scales": Case(
        Bug.GLOBAL_SCALE_UNGUARDED,
        Plan(
            (Complete(prompt=SHORT, scales=None), SetScales(at_scales(0.5, 0.0)), Complete(prompt=SHORT, scales=None)),
            (SetScales(at_scales(0.0, 0.0)),),
        ),
        3,
    ),
    "after-an-abort": Case(
        Bug.ABORTED_ROW_WRITES_AGAIN,
        Plan((Start(prompt=path(0, ("a", 19)), tokens=300), Await(0, 2), Abort(0), ask(path(1, ("b", 99))))),
        4,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_scripts_show_the_bug_and_pass_without(case: Case, tmp_path: Path) -> None:
    with zoo(case, planted=False) as (sound, server):
        folder = scripts_in(tmp_path, case, server)
        for script in ("repro.sh", "test_repro.py"):
            with zoo(case, planted=True) as (url, _):
                done = run(folder / script, case, url, sound)
            assert done.returncode == 1, done.stdout + done.stderr
            assert "REPRODUCED: " in done.stdout or "after the others" in done.stdout or "reused" in done.stdout
        for script in ("repro.sh", "test_repro.py"):
            with nullcontext((sound, server)) if case.reusable is None else zoo(case, planted=False) as (url, _):
                done = run(folder / script, case, url, sound)
            assert done.returncode == 0, done.stdout + done.stderr


def run(script: Path, case: Case, url: str, sound: str) -> subprocess.CompletedProcess[str]:
    """Only a server that was not asked before tells a true count; any sound one gives the right answer."""
    command = shell if script.suffix == ".sh" else pytest_case
    return command(script, URL=url) if case.reusable is not None else command(script, URL=url, ALONE_URL=sound)


ZOO = """
import os, sys, uvicorn
from fuzzer.zoo.serve import build, parse
uvicorn.run(build(parse(sys.argv[1:])), port=int(os.environ["PORT"]), log_level="error", lifespan="off")
"""


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("planted", [True, False])
def test_scripts_start_a_server_by_its_command(planted: bool, known: bool, tmp_path: Path) -> None:
    """The one that the run recorded, or one that the reader gives."""
    case, flags = CASES["asleep"], CASES["asleep"].flags(planted=planted)
    with zoo(case, planted=planted) as (_, server):
        folder = scripts_in(
            tmp_path, case, server, ["env", "A='b", "{PYTHON}", "-P", "-c", ZOO, *flags] if known else []
        )
    given = {} if known else {"START": shlex.join([sys.executable, "-P", "-c", ZOO, *flags])}
    for script in ("repro.sh", "test_repro.py"):
        done = (shell if script == "repro.sh" else pytest_case)(folder / script, **given)
        assert done.returncode == (1 if planted else 0), done.stdout + done.stderr
