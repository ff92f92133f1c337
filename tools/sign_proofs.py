"""Sign the proofs: write down which code each of them is about, and a fingerprint of it.

    python tools/sign_proofs.py            sign all proofs
    python tools/sign_proofs.py scores.md  sign the named proofs alone
    python tools/sign_proofs.py --check    only say what is out of date

A proof cites code as `module:object` in backquotes, as `data.quantize:Quantizer`. Its head lists
every citation with a fingerprint of the object's syntax tree: comments, layout and docstrings do
not count, everything else does. When cited code changes, a test fails until somebody has read the
proof again and signed it. Signing is a statement that the proof holds for the code as it is.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "dpsubset"
PROOFS = PACKAGE / "proofs"

_CITATION = re.compile(r"`([a-z0-9_.]+):([A-Za-z_][\w.]*)`")
_HEAD = re.compile(r"\A---\n(.*?)---\n", re.DOTALL)


def citations(text: str) -> list[str]:
    """Every `module:object` that the body of a proof cites."""
    return sorted({f"{module}:{name}" for module, name in _CITATION.findall(body(text))})


def signatures(text: str) -> dict[str, str]:
    """The citations and fingerprints in a proof's head."""
    head = _HEAD.match(text)
    lines = head.group(1).splitlines() if head else []
    pairs = (line.split() for line in lines if line.startswith("  "))
    return {name.removesuffix(":"): fingerprint for name, fingerprint in pairs}


def body(text: str) -> str:
    """A proof without its head."""
    return _HEAD.sub("", text, count=1)


def fingerprint(citation: str, package: Path = PACKAGE) -> str:
    """Of the code that a citation names; LookupError if there is none."""
    module, _, path = citation.partition(":")
    file = package.joinpath(*module.split("."))
    source = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    if not source.is_file():
        raise LookupError(f"{citation}: there is no module {module}")
    node: ast.AST = ast.parse(source.read_text(encoding="utf-8"))
    for name in path.split("."):
        node = _member(node, name, citation)
    return hashlib.sha256(_canonical(node).encode()).hexdigest()[:16]


def _member(node: ast.AST, name: str, citation: str) -> ast.AST:
    for child in getattr(node, "body", []):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)) and child.name == name:
            return child
        targets = child.targets if isinstance(child, ast.Assign) else [getattr(child, "target", 0)]
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            return child
    raise LookupError(f"{citation}: there is no {name}")


def _canonical(node: object) -> str:
    """Like ast.dump, but the same in every version of Python, and blind to docstrings."""
    if isinstance(node, ast.AST):
        fields = []
        for name, value in ast.iter_fields(node):
            if name == "body" and isinstance(value, list) and _is_docstring(value):
                value = value[1:]
            # Fields that are empty where they do not apply come and go between versions.
            if value not in (None, []) and name not in ("ctx", "kind", "type_comment"):
                fields.append(f"{name}={_canonical(value)}")
        return f"{type(node).__name__}({','.join(fields)})"
    if isinstance(node, list):
        return "[" + ",".join(map(_canonical, node)) + "]"
    return repr(node)


def _is_docstring(statements: list[ast.stmt]) -> bool:
    first = statements[0] if statements else None
    return (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )


def signed(text: str) -> str:
    """A proof with its head brought up to date."""
    lines = [f"  {citation}: {fingerprint(citation)}\n" for citation in citations(text)]
    head = "---\n# Cited code and its fingerprints, written by tools/sign_proofs.py.\ncites:\n"
    return head + "".join(lines) + "---\n" + body(text)


def main(arguments: list[str]) -> int:
    check = arguments == ["--check"]
    proofs = {path.name: path for path in sorted(PROOFS.glob("*.md"))}
    names = proofs if check or not arguments else arguments
    if not set(names) <= set(proofs):
        # Signing is a statement: nobody should make it by a slip.
        print(__doc__, file=sys.stderr)
        return 2
    stale = 0
    for path in map(proofs.__getitem__, names):
        text = path.read_text(encoding="utf-8")
        current = signed(text)
        if current == text:
            continue
        stale += 1
        if check:
            old, new = signatures(text), signatures(current)
            changed = [name for name in new if old.get(name) != new[name]]
            print(f"{path.name}: not signed for {', '.join(changed) or 'fewer citations'}")
        else:
            path.write_text(current, encoding="utf-8")
            print(f"{path.name}: signed")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
