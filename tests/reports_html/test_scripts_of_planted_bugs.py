"""Scripts of findings that need requests side by side, an earlier answer, or a count: against real servers."""

from __future__ import annotations

import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest
from making import ask, path
from scripted import Case, scripts_in, zoo
from scripts import pytest_case, shell

from fuzzer.zoo.bugs import Bug
from scenarios.operations import Abort, Await, Complete, Join, Start
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment

LONG, SHORT, OTHER = path(0, ("a", 479)), path(1, ("b", 19)), path(2, ("c", 19))
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
        for script in ("repro.sh", "test_repro.py"):
            with nullcontext((sound, server)) if case.reusable is None else zoo(case, planted=False) as (url, _):
                done = run(folder / script, case, url, sound)
            assert done.returncode == 0, done.stdout + done.stderr


def run(script: Path, case: Case, url: str, sound: str) -> subprocess.CompletedProcess[str]:
    """Only a server that was not asked before tells a true count; any sound one gives the right answer."""
    command = shell if script.suffix == ".sh" else pytest_case
    return command(script, URL=url) if case.reusable is not None else command(script, URL=url, ALONE_URL=sound)
