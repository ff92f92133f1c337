"""Imports point downward only; the picture is in docs/architecture.md."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import dpsubset

ROOT = Path(dpsubset.__file__).parent

#: Folders whose modules stand on different floors: their layers are `folder.module`. All others are
#: one layer each.
ROOMS = {"public", "table", "privacy"}

#: What a layer may import of the package, besides itself and `errors`. Nothing may import the
#: package's own __init__, which imports lazily.
DESCRIBED = {
    "public.provenance",
    "public.labels",
    "public.dates",
    "public.formats",
    "public.bounds_file",
    "public.column",
    "public.entries",
    "public.schema",
    "public.layout",
    "public.design",
}
DATA = {"table.door", "table.moments", "table.products", "table.digest"}
SCALE = {"privacy.scale", "public.response_scale"}
BASE = {"arguments", "exact", "kernels", "constraints"} | DESCRIBED | DATA
MODEL = {"public.problem", "losses", "privacy.sensitivity"}
ENGINE = {"search", "privacy.random"}
MAY_IMPORT: dict[str, set[str]] = {
    "text": set(),
    "callers": set(),
    "errors": {"text"},
    "arguments": set(),
    "exact": set(),
    # They know of nothing but numbers and arrays.
    "kernels": set(),
    "constraints": {"exact", "kernels"},
    "public.provenance": set(),
    "public.labels": {"arguments"},
    "public.dates": set(),
    "public.formats": set(),
    "public.bounds_file": set(),
    "public.column": {"arguments", "public.labels", "public.dates", "public.formats"},
    "public.entries": {"arguments", "public.bounds_file", "public.column", "public.dates"},
    "public.schema": {
        "arguments",
        "public.labels",
        "public.dates",
        "public.bounds_file",
        "public.column",
        "public.entries",
        "public.provenance",
    },
    "public.layout": set(),
    "public.design": {"arguments", "public.schema", "public.layout"},
    "table.door": DESCRIBED | {"kernels"},
    "table.moments": {"arguments", "kernels", "public.schema", "table.door"},
    "table.products": {"kernels"},
    "table.digest": {"kernels", "public.schema", "table.door", "table.moments", "table.products"},
    # Sources stand beside the moments: they make blocks for them and know nothing of what follows.
    "table.sources": DESCRIBED | {"kernels", "table.moments"},
    "table.types": DESCRIBED | {"table.sources", "text"},
    "public.problem": BASE | {"losses"},
    "losses": BASE | {"public.problem"},
    "privacy.sensitivity": BASE | {"public.problem", "losses"},
    "privacy.random": {"exact"},
    "privacy.noise": {"exact"},
    "privacy.accounting": {"exact"},
    "privacy.guarantee": {"exact", "public.problem", "privacy.sensitivity", "privacy.accounting"},
    "privacy.budget": {"exact", "public.problem"}
    | {"privacy.noise", "privacy.accounting", "privacy.guarantee"},
    # What was spent, and where that is kept. It knows costs, and nothing of what was released.
    "ledger": {"arguments", "public.problem", "privacy.accounting", "privacy.guarantee"},
    "privacy.scale": {"arguments", "public.problem", "privacy.guarantee", "privacy.random"},
    "privacy.sup_norm": {"privacy.random"},
    # Counts of cells that hold no value: how they are drawn, and which.
    "privacy.counts": {"public.problem"}
    | {"privacy.guarantee", "privacy.random", "privacy.sup_norm"},
    "public.readable": {"arguments", "public.problem", "public.schema", "privacy.counts"}
    | {"privacy.guarantee", "privacy.random"},
    "privacy.stopping": {"arguments", "privacy.guarantee", "privacy.random"},
    "public.response_scale": {"arguments", "privacy.scale"},
    # From noisy sums to a model. Of a table `entries` alone is given something: exact sums.
    "models": BASE
    | SCALE
    | {"public.problem", "privacy.noise", "privacy.accounting", "privacy.guarantee"}
    | {"privacy.random", "privacy.sup_norm"},
    "table.response": {"public.schema", "table.door", "table.moments", "privacy.scale"},
    # Bounds from quantiles: which, and of which columns.
    "public.suggested": {"privacy.scale", "public.schema"},
    "table.histograms": {"table.sources", "table.response", "privacy.scale"} | DESCRIBED | DATA,
    "table.listing": DESCRIBED | {"table.histograms", "table.sources", "table.types"},
    "search": BASE | MODEL | {"privacy.random"},
    "mechanisms": BASE
    | MODEL
    | ENGINE
    | {"privacy.noise", "privacy.accounting", "privacy.guarantee", "privacy.budget"},
    "release": BASE
    | MODEL
    | ENGINE
    | {"mechanisms", "models", "privacy.guarantee", "privacy.scale", "table.sources", "text"}
    | {"ledger", "privacy.sup_norm", "privacy.stopping"},
    # What is asked of a table, public; and the table itself, private.
    "public.stated": BASE | MODEL | ENGINE | {"table.sources"},
    "table.sealed": BASE | MODEL | {"table.sources", "table.response"},
    "public.plan": BASE
    | MODEL
    | ENGINE
    | SCALE
    | {"public.stated", "table.sealed", "privacy.guarantee", "mechanisms", "public.readable"},
    "selection": BASE
    | MODEL
    | ENGINE
    | SCALE
    | {"table.sources", "table.types", "public.stated", "table.sealed", "public.plan"}
    | {"privacy.guarantee", "mechanisms", "release", "ledger", "text", "callers"},
    "fitting": BASE
    | MODEL
    | ENGINE
    | SCALE
    | {"table.sources", "public.stated", "table.sealed", "public.plan", "privacy.guarantee"}
    | {"mechanisms", "models", "release", "selection", "ledger", "public.readable", "table.types"},
    "tuning": BASE
    | SCALE
    | {"public.problem", "public.stated", "public.plan", "table.sealed", "ledger", "models"}
    | {"privacy.guarantee", "privacy.random", "privacy.stopping", "release", "selection"}
    | {"fitting", "public.readable", "table.types"},
    "refitting": BASE
    | {"table.sources", "table.types", "public.stated", "table.sealed", "public.plan", "ledger"}
    | {"privacy.guarantee", "privacy.random", "models", "release", "selection", "fitting"},
    "suggestion": BASE
    | {"public.problem", "public.plan", "public.suggested", "table.sources", "table.types"}
    | {
        "table.listing",
        "table.histograms",
        "privacy.random",
        "privacy.guarantee",
        "privacy.scale",
        "release",
        "ledger",
    },
    "estimates": BASE
    | MODEL
    | {
        "mechanisms",
        "table.sealed",
        "public.plan",
        "public.suggested",
        "table.sources",
        "table.listing",
        "table.histograms",
        "table.types",
    }
    | {"privacy.random", "privacy.noise", "privacy.accounting", "privacy.guarantee"}
    | {"privacy.budget", "privacy.scale", "release", "ledger"},
    # How public sample rows read: not private, and nothing is released.
    "sample": BASE | {"release", "table.sources", "text"},
    "verification": {"exact", "ledger", "privacy.guarantee", "release"},
    # Cross-checks of the search: nothing that releases may ask them.
    "solvers": BASE | MODEL | ENGINE,
    "optimum": BASE
    | MODEL
    | ENGINE
    | {"table.sources", "public.stated", "table.sealed", "solvers"},
    "audit": BASE
    | MODEL
    | ENGINE
    | {"privacy.guarantee", "privacy.budget", "privacy.scale", "mechanisms"}
    | {"privacy.counts", "public.readable"}
    # What is released beside selections, and the tables that it is made of.
    | {"privacy.stopping", "privacy.sup_norm"}
    | {"models", "estimates", "suggestion", "table.sealed", "table.listing", "table.histograms"},
    "research": BASE
    | MODEL
    | ENGINE
    | {"table.sources", "public.stated", "table.sealed", "public.plan", "mechanisms", "audit"},
    # What to expect of releases from made-up tables: it knows mechanisms, and nothing of a table.
    "planning": BASE | MODEL | ENGINE | SCALE | {"public.stated", "public.plan", "mechanisms"},
    "proofs": set(),
}
TOP = set(MAY_IMPORT)
MAY_IMPORT |= {"cli": TOP | {"searches"}, "estimators": TOP, "__main__": {"cli"}}
MAY_IMPORT["predictors"] = TOP | {"estimators"}
MAY_IMPORT["private_search"] = TOP | {"estimators", "predictors"}
MAY_IMPORT["searches"] = TOP | {"estimators", "predictors", "private_search"}
for name in ("estimators", "predictors"):
    MAY_IMPORT[name] = MAY_IMPORT[name] | {"searches"}
#: The version is a fact, not a layer.
HARMLESS = {"__version__"}
#: Import by name hides an arrow from this test, so there is none, with one exception: the table of
#: mechanisms is filled from the modules beside it. It can name nothing else, as the name is that of
#: a file in its own folder, and these files are parsed here like all others.
BY_NAME = {ROOT / "mechanisms" / "__init__.py": "import_module(f'.{found.name}', __name__)"}


def layer(module: Path) -> str:
    return layer_of([*module.relative_to(ROOT).with_suffix("").parts])


def layer_of(parts: list[str]) -> str:
    """Of a module's path within the package, or of the name that an import takes from there."""
    if parts[0] in ROOMS and len(parts) > 1 and parts[1] != "__init__":
        return ".".join(parts[:2])
    return parts[0]


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
            by_name = name in ("import_module", "__import__")
            assert not by_name or ast.unparse(node) == BY_NAME.get(module), f"{module}: by name"
        for name in names:
            parts = name.split(".")
            if parts[0] == "dpsubset" and not (len(parts) == 2 and parts[1] in HARMLESS):
                found.add(layer_of(parts[1:]) if len(parts) > 1 else "dpsubset")
    return found


#: Rooms hold no code of their own; the package's own module imports lazily.
EMPTY = {ROOT / "__init__.py", *(ROOT / room / "__init__.py" for room in ROOMS)}
MODULES = sorted(path for path in ROOT.rglob("*.py") if path not in EMPTY)


def test_rooms_hold_no_code_of_their_own() -> None:
    for room in ROOMS:
        tree = ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8"))
        assert all(isinstance(node, ast.Expr) for node in tree.body), room


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


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("search/engine.py", "import_module('dpsubset.selection')"),
        ("search/engine.py", "__import__('dpsubset.selection')"),
        ("search/engine.py", "import_module(f'.{found.name}', __name__)"),
        ("mechanisms/__init__.py", "import_module('dpsubset.selection')"),
        ("mechanisms/__init__.py", "import_module(f'.{found.name}', 'dpsubset')"),
        ("mechanisms/top_r.py", "importlib.import_module(f'.{found.name}', __name__)"),
    ],
)
def test_nothing_is_imported_by_name(module: str, source: str) -> None:
    with pytest.raises(AssertionError, match="by name"):
        imported(ROOT / module, ast.parse(source))


def test_the_layers_have_no_cycle_but_the_one_within_the_model() -> None:
    # problem and losses know each other: a loss is part of a problem, its minimum depends on it.
    order: list[str] = []
    left = {name: set(below) for name, below in MAY_IMPORT.items()}
    left["public.problem"].discard("losses")
    # A step asks what a search over it costs, and a search is made of steps.
    for name in ("cli", "estimators", "predictors"):
        left[name] -= {name, "searches"}
    while left:
        ready = sorted(name for name, below in left.items() if below <= set(order))
        assert ready, f"a cycle among {sorted(left)}"
        order += ready
        for name in ready:
            del left[name]
    assert order.index("public.schema") < order.index("table.moments") < order.index("search")
    assert order.index("mechanisms") < order.index("selection") < order.index("cli")
