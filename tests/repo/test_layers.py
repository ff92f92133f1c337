"""Folders import from folders below them only, and touch what docs/architecture.md says."""

from __future__ import annotations

import ast
import itertools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from import_graph import PACKAGE, folder_of, graph, imported_folders, layers

#: What a folder may import from, besides itself. Nothing may import the package's own __init__,
#: which imports lazily.
MAY_IMPORT: dict[str, set[str]] = {
    "base": set(),
    "constraints": {"base"},
    "schema": {"base"},
    "privacy": {"base", "schema"},
    "models": {"base", "schema", "privacy"},
    "data": {"base", "schema", "privacy"},
    "ledger": {"base", "privacy"},
    "objective": {"base", "constraints", "schema", "privacy", "data"},
    "search": {"base", "constraints", "privacy", "data", "objective"},
    "mechanisms": {"base", "constraints", "schema", "privacy", "data", "objective", "search"},
    "release": {"base", "schema", "privacy", "models", "data", "ledger", "objective", "mechanisms"},
    "api": {"base", "constraints", "schema", "privacy", "models", "data", "ledger", "objective",
            "search", "mechanisms", "release"},
    "audit": {"base", "schema", "privacy", "models", "data", "objective", "mechanisms", "api"},
    "power_analysis": {"base", "constraints", "schema", "privacy", "models", "data", "objective",
                       "search", "mechanisms", "api"},
    "papers": {"base", "schema", "privacy", "data", "ledger", "objective", "mechanisms", "release",
               "api", "audit"},
    "sklearn": {"base", "schema", "privacy", "models", "data", "ledger", "mechanisms", "release",
                "api"},
    "cli": {"base", "constraints", "schema", "privacy", "models", "data", "ledger", "objective",
            "mechanisms", "release", "api", "audit", "power_analysis",
            "sklearn"},
}  # fmt: skip
#: An import by name would hide an edge of the graph, so there is none, with one exception: the
#: table of mechanisms is filled from the modules beside it. The name is that of a file in its own
#: folder, and these files are parsed here like all others.
BY_NAME = {"mechanisms/__init__.py": "import_module(f'{package.__name__}.{entry.name}')"}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"


def table_of_layers() -> list[list[str]]:
    """The rows of the page's table, as cells without backquotes."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines]
    start = next(i for i, row in enumerate(cells) if row[:1] == ["layer"])
    return list(itertools.takewhile(bool, cells[start + 2 :]))


def touches() -> dict[str, tuple[str, str]]:
    """What the page says that a folder may touch: randomness and the ledger."""
    return {row[0]: (row[3], row[4]) for row in table_of_layers()}


def test_the_page_lists_what_each_folder_may_import() -> None:
    listed = {row[0]: set(row[5].replace("`", "").split(", ")) for row in table_of_layers()}
    folders = {name: names for name, names in listed.items() if "/" not in name}
    assert folders == {name: names or {"nothing"} for name, names in MAY_IMPORT.items()}


def imported_modules(module: Path, tree: ast.AST) -> set[str]:
    """Return what a module imports from the package: `privacy.random.Randomness`, in full."""
    parents = module.relative_to(PACKAGE).parent.parts
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = parents[: len(parents) - node.level + 1]
            start = [*above, *([node.module] if node.module else [])]
            found.update(".".join([*start, alias.name]) for alias in node.names)
    return found


def touched(module: Path, tree: ast.AST) -> tuple[bool, bool]:
    """Return whether a module imports what draws, and whether it imports the ledger."""
    found = [f"{name}." for name in imported_modules(module, tree)]
    draws = any(name.startswith(("privacy.random.", "privacy.noise.")) for name in found)
    return draws, any(name.startswith("ledger.") for name in found)


def imports_by_name(tree: ast.AST) -> list[str]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [
        ast.unparse(call)
        for call in calls
        if getattr(call.func, "id", getattr(call.func, "attr", ""))
        in ("import_module", "__import__")
    ]


def test_every_folder_has_a_row() -> None:
    assert set(graph()) == set(MAY_IMPORT)


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(PACKAGE)))
def test_imports_point_downward(module: Path) -> None:
    here, tree = folder_of(module), ast.parse(module.read_text(encoding="utf-8"))
    upward = imported_folders(module, tree) - MAY_IMPORT[here] - {here}
    assert not upward, f"{module.relative_to(PACKAGE)} imports {sorted(upward)}"
    allowed = BY_NAME.get(str(module.relative_to(PACKAGE)))
    assert set(imports_by_name(tree)) <= {allowed}


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(PACKAGE)))
def test_a_module_touches_what_the_page_says(module: Path) -> None:
    # Of the rows of a folder and of a folder in it, the last one counts.
    place, rows = str(module.relative_to(PACKAGE).as_posix()), touches()
    row = rows[max((folder for folder in rows if place.startswith(f"{folder}/")), key=len)]
    draws, spends = touched(module, ast.parse(module.read_text(encoding="utf-8")))
    here = folder_of(module)
    assert not (draws and row[0] == "no"), f"{place} imports randomness"
    assert not (spends and row[1] == "no" and here != "ledger"), f"{place} imports the ledger"


def test_the_page_has_a_row_for_every_folder() -> None:
    assert set(MAY_IMPORT) <= set(touches())
    assert {folder for folder, row in touches().items() if row == ("no", "no")} == {
        "base", "constraints", "schema", "data", "objective", "search/bounds", "search/solvers"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from ..privacy.random import Randomness", (True, False)),
        ("from ..privacy import noise", (True, False)),
        ("def f():\n    from ..privacy.random.draws import LazyUniform", (True, False)),
        ("from ..privacy.random_stopping import Stopping", (False, False)),
        ("from ..ledger import store", (False, True)),
        ("from ..ledger.ledger import Ledger", (False, True)),
    ],
)
def test_planted_randomness_and_ledgers_are_found(source: str, found: tuple[bool, bool]) -> None:
    assert touched(PACKAGE / "search" / "engine.py", ast.parse(source)) == found


def test_the_table_has_no_cycle() -> None:
    order = layers(MAY_IMPORT)
    assert order.index("data") < order.index("search") < order.index("mechanisms")
    assert order.index("mechanisms") < order.index("api") < order.index("cli")


def test_a_cycle_is_found() -> None:
    with pytest.raises(ValueError, match=r"a cycle among .*data.*search"):
        layers({**MAY_IMPORT, "data": {"base", "search"}})


@pytest.mark.parametrize(
    "source",
    [
        "from ..api import select",
        "from ..api.select import select",
        "from dpsubset.api.select import select",
        "import dpsubset.api.select as s",
        "from dpsubset import api",
        "from .. import api",
        "def f():\n    from ..api import select",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..api import select",
        "import dpsubset",
        "from .. import select",
    ],
)
def test_a_planted_upward_import_is_found(source: str) -> None:
    found = imported_folders(PACKAGE / "search" / "engine.py", ast.parse(source))
    assert found - MAY_IMPORT["search"] - {"search"}


@pytest.mark.parametrize(
    "source",
    [
        "import_module('dpsubset.api.select')",
        "__import__('dpsubset.api.select')",
        "importlib.import_module(f'.{entry.name}', __name__)",
    ],
)
def test_an_import_by_name_is_found(source: str) -> None:
    assert imports_by_name(ast.parse(source))
