"""Print which folder of the package imports which, lowest first, and fail if there is a cycle.

    python tools/import_graph.py

Imports inside functions and under TYPE_CHECKING count too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "dpsubset"

#: A fact that any folder may import from the package itself, and not a layer.
VERSION = "__version__"


def folder_of(module: Path, package: Path = PACKAGE) -> str:
    """Return the folder directly below the package, or the module's name if it has none."""
    return module.relative_to(package).with_suffix("").parts[0]


def imported_folders(module: Path, tree: ast.AST, package: Path = PACKAGE) -> set[str]:
    """Return the folders of the package that a module imports from, its own included.

    The package's own ``__init__``, from which nothing inside may import, is called "dpsubset".
    """
    parents = ["dpsubset", *module.relative_to(package).parent.parts]
    found: set[str] = set()
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{start}.{alias.name}" for alias in node.names]
        for parts in (name.split(".") for name in names):
            if parts[0] == "dpsubset" and parts[1:] != [VERSION]:
                found.add(_folder(parts, package))
    return found


def _folder(parts: list[str], package: Path) -> str:
    if len(parts) > 1 and ((package / parts[1]).is_dir() or len(parts) > 2):
        return parts[1]
    return "dpsubset"


def graph(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Return which folders each folder imports from, apart from itself."""
    found: dict[str, set[str]] = {}
    for module in package.rglob("*.py"):
        here = folder_of(module, package)
        if module.parent != package:
            tree = ast.parse(module.read_text(encoding="utf-8"))
            found.setdefault(here, set()).update(imported_folders(module, tree, package) - {here})
    return found


def layers(edges: dict[str, set[str]]) -> list[str]:
    """Return the folders from the lowest to the highest; ValueError if they form a cycle."""
    order: list[str] = []
    left = dict(edges)
    while left:
        ready = sorted(name for name, below in left.items() if below <= set(order))
        if not ready:
            raise ValueError(f"a cycle among {_joined(left)}")
        order += ready
        left = {name: below for name, below in left.items() if name not in ready}
    return order


def _joined(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def main() -> None:
    edges = graph()
    try:
        order = layers(edges)
    except ValueError as error:
        sys.exit(str(error))
    for name in order:
        print(f"{name:12} imports {_joined(edges[name]) or 'nothing'}")
    print(f"{len(order)} folders, no cycle")


if __name__ == "__main__":
    main()
