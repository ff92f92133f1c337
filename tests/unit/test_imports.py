"""Imports point downward only; the picture is in docs/architecture.md."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import dpsubset

ROOT = Path(dpsubset.__file__).parent

#: What a layer may import of the package, besides itself and `errors`. A layer is a module or
#: a folder of this name. Nothing may import the package's own __init__, which imports lazily.
BASE = {"arguments", "labels", "schema", "door", "moments", "gram"}
MODEL = {"problem", "losses", "sensitivity"}
ENGINE = {"search", "random"}
MAY_IMPORT: dict[str, set[str]] = {
    "text": set(),
    "errors": {"text"},
    "arguments": set(),
    "labels": {"arguments"},
    "bounds_file": set(),
    "schema": {"labels", "arguments", "bounds_file"},
    "door": {"schema"},
    "moments": {"arguments", "schema", "door"},
    "gram": {"schema", "door", "moments"},
    # Sources stand beside the moments: they make blocks for them and know nothing of what follows.
    "sources": {"labels", "bounds_file", "schema", "moments"},
    "problem": BASE | {"losses"},
    "losses": BASE | {"problem"},
    "sensitivity": BASE | {"problem", "losses"},
    "random": set(),
    "noise": set(),
    "accounting": set(),
    "search": BASE | MODEL | {"random"},
    "mechanisms": BASE | MODEL | ENGINE | {"noise", "accounting"},
    "release": BASE | MODEL | ENGINE | {"mechanisms", "text"},
    # What is asked of a table, public; and the table itself, private.
    "stated": BASE | MODEL | ENGINE | {"sources"},
    "sealed": BASE | MODEL | {"sources"},
    "plan": BASE | MODEL | ENGINE | {"stated", "sealed", "mechanisms"},
    "selection": BASE
    | MODEL
    | ENGINE
    | {"sources", "stated", "sealed", "plan", "mechanisms", "release"},
    "chains": BASE | MODEL | ENGINE | {"sources", "stated", "sealed", "plan", "mechanisms"},
    # Cross-checks of the search: nothing that releases may ask them.
    "solvers": BASE | MODEL | ENGINE,
    "optimum": BASE | MODEL | ENGINE | {"sources", "stated", "sealed", "solvers"},
    "audit": BASE | MODEL | ENGINE | {"mechanisms"},
    "proofs": set(),
}
TOP = {*MAY_IMPORT, "outputs", "signals"}
MAY_IMPORT |= {
    "signals": set(),
    "outputs": TOP,
    "cli": TOP,
    "estimators": TOP,
    "__main__": {"cli"},
}
#: The version is a fact, not a layer.
HARMLESS = {"__version__"}


def layer(module: Path) -> str:
    return module.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(module: Path, tree: ast.AST) -> set[str]:
    """Layers that a module imports anywhere, functions and TYPE_CHECKING blocks included."""
    package = ["dpsubset", *module.relative_to(ROOT).parent.parts]
    found: set[str] = set()
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{start}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            assert name not in ("import_module", "__import__"), f"{module}: import by name"
        for name in names:
            parts = name.split(".")
            if parts[0] == "dpsubset" and not (len(parts) == 2 and parts[1] in HARMLESS):
                found.add(parts[1] if len(parts) > 1 else "dpsubset")
    return found


MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(ROOT)))
def test_imports_point_downward(module: Path) -> None:
    here = layer(module)
    assert here in MAY_IMPORT, f"{here} is a new layer: give it its row here and in the docs"
    allowed = MAY_IMPORT[here] | {here, "errors"}
    upward = imported(module, ast.parse(module.read_text(encoding="utf-8"))) - allowed
    assert not upward, f"{module.relative_to(ROOT)} imports {sorted(upward)}"


@pytest.mark.parametrize(
    "source",
    [
        "from ..selection import select",
        "from dpsubset.selection import select",
        "import dpsubset.selection as s",
        "from dpsubset import selection",
        "from .. import selection",
        "def f():\n    from ..selection import select",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..selection import select",
        "import dpsubset",
        "from .. import select",
    ],
)
def test_the_test_sees_every_kind_of_import(source: str) -> None:
    found = imported(ROOT / "search" / "engine.py", ast.parse(source))
    assert found - MAY_IMPORT["search"] - {"search", "errors"}


def test_the_layers_have_no_cycle_but_the_one_within_the_model() -> None:
    # problem and losses know each other: a loss is part of a problem, its minimum depends on it.
    order: list[str] = []
    left = {name: set(below) for name, below in MAY_IMPORT.items()}
    left["problem"].discard("losses")
    for name in ("outputs", "cli", "estimators"):
        left[name] -= {name}
    while left:
        ready = sorted(name for name, below in left.items() if below <= set(order))
        assert ready, f"a cycle among {sorted(left)}"
        order += ready
        for name in ready:
            del left[name]
    assert order.index("schema") < order.index("moments") < order.index("search")
    assert order.index("mechanisms") < order.index("selection") < order.index("cli")
