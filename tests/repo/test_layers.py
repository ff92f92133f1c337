"""Folders import from folders below them only; the table is in docs/architecture.md."""

from __future__ import annotations

import ast
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
