"""What others read, against the schemas that they publish.

GitHub's schemas come with the package check-jsonschema. Those of SARIF and of Jenkins' JUnit format come in no package:
``STALEFUZZ_SCHEMAS`` names a folder with sarif-schema-2.1.0.json (oasis-tcs/sarif-spec) and junit-10.xsd
(jenkinsci/xunit-plugin).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import xmlschema
from changed_records import CHANGES
from real_run import real_record

from reports.junit import junit
from reports.record import RunRecord
from reports.sarif import sarif

ACTION = Path(__file__).resolve().parents[2] / ".github" / "actions" / "stalefuzz"


def schema(name: str) -> Path:
    folder = os.environ.get("STALEFUZZ_SCHEMAS")
    if folder is None:
        pytest.skip(f"STALEFUZZ_SCHEMAS names no folder with {name}")
    return Path(folder) / name


def check(kind: str, file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{kind}", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_action_is_one(tmp_path: Path) -> None:
    done = check("github-actions", ACTION / "action.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    broken = tmp_path / "action.yml"
    broken.write_text((ACTION / "action.yml").read_text().replace("using: composite", "using: magic"))
    assert check("github-actions", broken).returncode == 1


def test_documented_workflow_is_one(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (ACTION / "README.md").read_text(), re.DOTALL)
    workflow = tmp_path / "workflow.yml"
    workflow.write_text(block)
    done = check("github-workflows", workflow)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_sarif_fits_the_schema_of_oasis(change: Callable[[RunRecord], RunRecord]) -> None:
    rules = jsonschema.Draft7Validator(json.loads(schema("sarif-schema-2.1.0.json").read_text()))
    assert [error.message for error in rules.iter_errors(json.loads(sarif(change(real_record()))))] == []


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_junit_fits_the_schema_of_jenkins(change: Callable[[RunRecord], RunRecord]) -> None:
    rules = xmlschema.XMLSchema(str(schema("junit-10.xsd")))
    assert [error.reason for error in rules.iter_errors(junit(change(real_record())).decode())] == []
