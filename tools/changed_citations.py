"""List the code cited by proofs that changed since a revision by more than moves and renames.

    python tools/changed_citations.py REV             the objects that have to be read again
    python tools/changed_citations.py REV --renames   also every pair of names that differ

Two objects are the same up to renames if their syntax trees have the same shape, the same constants
(docstrings and the texts of errors aside), and if their identifiers match one to one within the
object: variables, attributes and keywords each among themselves. A cited object is looked for at
REV under its own name first, then among the objects that proofs cited there. What is listed has to
be read with its proof before tools/sign_proofs.py signs.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sign_proofs import PACKAGE, PROOFS, _is_docstring, _member, citations

ROOT = PACKAGE.parents[1]

#: Fields of syntax trees that hold identifiers.
_NAMES = {"id", "attr", "arg", "name", "asname", "module", "names"}
#: By kind of identifier, former names with the present ones.
Pairs = defaultdict[str, dict[str, str]]


def matched(old: object, new: object, pairs: Pairs, in_error: bool = False) -> bool:
    """Return whether two trees differ by names alone, which are added to ``pairs``."""
    if isinstance(old, ast.AST) and isinstance(new, ast.AST):
        if isinstance(old, ast.JoinedStr | ast.Constant) and in_error:
            return isinstance(new, ast.JoinedStr | ast.Constant)
        if type(old) is not type(new):
            return False
        in_error = in_error or isinstance(old, ast.Raise)
        before, after = _fields(old), _fields(new)
        return before.keys() == after.keys() and all(
            _paired(before[key], after[key], pairs[_kind(old, key)])
            if key in _NAMES and isinstance(before[key], str)
            else matched(before[key], after[key], pairs, in_error)
            for key in before
        )
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(
            matched(a, b, pairs, in_error) for a, b in zip(old, new, strict=True)
        )
    if isinstance(old, str) and isinstance(new, str) and old.isidentifier():
        return old == new or _paired(old, new, pairs["id"])
    return type(old) is type(new) and old == new


def _fields(node: ast.AST) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in ast.iter_fields(node):
        if name == "body" and isinstance(value, list) and _is_docstring(value):
            value = value[1:]
        if value not in (None, []) and name not in ("ctx", "kind", "type_comment"):
            found[name] = value
    return found


def _kind(node: ast.AST, field: str) -> str:
    return "keyword" if isinstance(node, ast.keyword) else "id" if field == "arg" else field


def _paired(old: object, new: object, pairs: dict[str, str]) -> bool:
    if not isinstance(old, str) or not isinstance(new, str):
        return False
    if old in pairs:
        return pairs[old] == new
    if new in pairs.values():
        return False
    pairs[old] = new
    return True


def old_objects(revision: str) -> dict[str, ast.AST]:
    """Return every object that a proof cited at a revision, by its citation."""
    prefix = "src/dpsubset"
    shown = ["git", "-C", str(ROOT), "show"]
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-tree", "-r", "--name-only", revision, prefix],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    trees: dict[str, ast.AST] = {}
    found = {}
    for proof in (path for path in listed if path.startswith(f"{prefix}/proofs/")):
        text = subprocess.run([*shown, f"{revision}:{proof}"], capture_output=True, text=True)
        for citation in citations(text.stdout):
            module, _, path = citation.partition(":")
            stem = f"{prefix}/{module.replace('.', '/')}"
            file = f"{stem}.py" if f"{stem}.py" in listed else f"{stem}/__init__.py"
            if file not in trees:
                source = subprocess.run(
                    [*shown, f"{revision}:{file}"], capture_output=True, text=True, check=True
                ).stdout
                trees[file] = ast.parse(source)
            found[citation] = _object(trees[file], path, citation)
    return found


def _object(tree: ast.AST, path: str, citation: str) -> ast.AST:
    for name in path.split("."):
        tree = _member(tree, name, citation)
    return tree


def new_objects() -> Iterator[tuple[str, str, ast.AST]]:
    """Yield proof, citation and object for everything that a proof cites now."""
    for proof in sorted(PROOFS.glob("*.md")):
        for citation in citations(proof.read_text(encoding="utf-8")):
            module, _, path = citation.partition(":")
            file = PACKAGE.joinpath(*module.split("."))
            source = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
            tree = ast.parse(source.read_text(encoding="utf-8"))
            yield proof.name, citation, _object(tree, path, citation)


def main(arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 2 or arguments[1:] not in ([], ["--renames"]):
        print(__doc__, file=sys.stderr)
        return 2
    before = old_objects(arguments[0])
    to_read: dict[str, list[str]] = defaultdict(list)
    renames: Counter[tuple[str, str]] = Counter()
    same = 0
    for proof, citation, node in new_objects():
        own = citation.split(":")[1]
        # Under its own name first: short functions of one shape match each other.
        candidates = sorted(before, key=lambda c, own=own: c.split(":")[1] != own)  # type: ignore[misc]
        for candidate in candidates:
            pairs: Pairs = defaultdict(dict)
            if matched(before[candidate], node, pairs):
                same += 1
                each = (pair for kind in pairs.values() for pair in kind.items())
                renames.update({pair for pair in each if pair[0] != pair[1]})
                break
        else:
            to_read[proof].append(citation)
    if arguments[1:]:
        for (old, new), count in sorted(renames.items()):
            print(f"{old} -> {new} ({count})")
    for proof, listed in to_read.items():
        print(f"{proof}: {', '.join(listed)}")
    print(f"{same} citations changed by moves and renames at most, "
          f"{sum(map(len, to_read.values()))} to read")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
