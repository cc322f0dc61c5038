"""The house keeps its order: imports run one way, the lower floors stay free of the outside, modules stay small."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHAIN = ("scenarios", "oracles", "reports", "fuzzer")
MOST_LINES = 400
OUTSIDE = {
    "scenarios": {"hypothesis", "msgspec"},
    "oracles": {"msgspec"},
    "reports": {"jinja2", "markupsafe", "msgspec", "rich"},
}
"""What each floor may use besides the standard library; the top floor may use anything."""


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports(module: Path) -> Iterator[str]:
    """Top-level names that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                yield from (alias.name.partition(".")[0] for alias in node.names)
            case ast.ImportFrom(module=str(name), level=0):
                yield name.partition(".")[0]
            case ast.ImportFrom():
                yield package_of(module)


def package_of(module: Path) -> str:
    return module.relative_to(ROOT).parts[0]


def floors_above(package: str) -> set[str]:
    return set(CHAIN[CHAIN.index(package) + 1 :])


def offences(package: str, imported: set[str]) -> set[str]:
    """The names that a module of ``package`` must not import."""
    foreign = imported - set(CHAIN) - sys.stdlib_module_names
    forbidden = foreign - OUTSIDE[package] if package in OUTSIDE else set()
    return imported & (floors_above(package) | {"tests"}) | forbidden


@pytest.mark.parametrize("package", CHAIN)
def test_no_import_runs_back_up(package: str) -> None:
    found = {str(module): offences(package, set(imports(module))) for module in modules(package)}
    assert len(found) > 1
    assert {module: names for module, names in found.items() if names} == {}


def test_offences_are_seen() -> None:
    assert offences("scenarios", {"httpx", "oracles", "msgspec", "json", "scenarios"}) == {"httpx", "oracles"}
    assert offences("reports", {"fuzzer", "oracles", "rich", "click"}) == {"fuzzer", "click"}
    assert offences("fuzzer", {"httpx", "reports", "tests"}) == {"tests"}


@pytest.mark.parametrize("package", [*CHAIN, "tests"])
def test_modules_stay_small(package: str) -> None:
    lengths = {str(module): len(module.read_text(encoding="utf-8").splitlines()) for module in modules(package)}
    assert {module: lines for module, lines in lengths.items() if lines > MOST_LINES} == {}


@pytest.mark.parametrize("package", CHAIN)
def test_package_files_do_no_work(package: str) -> None:
    for module in modules(package):
        if module.name == "__init__.py":
            body = ast.parse(module.read_text(encoding="utf-8")).body
            assert all(isinstance(node, ast.Expr) for node in body), module
