"""What the pages cite exists: files, folders, objects of modules, links, layers."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

import dpsubset as dps
from support.tools import load_script

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dpsubset"
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]

#: A path in backquotes: of a Python module or a proof, or of a folder.
_PATH = re.compile(r"`([\w./]+(?:\.py|\.md|/))`")
_OBJECT = re.compile(r"`([a-z0-9_.]+):([A-Za-z_][\w.]*)`")
_LINK = re.compile(r"\]\(([^)#]*)(#[^)]*)?\)")


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def exists(path: str) -> bool:
    """From the root, from the package or where it lies, or in some folder of it or of the tests."""
    if any((folder / path).exists() for folder in (ROOT, PACKAGE, PACKAGE.parent)):
        return True
    folders = (PACKAGE, ROOT / "tests")
    return any(next(folder.rglob(path.rstrip("/")), None) is not None for folder in folders)


@pytest.mark.parametrize("page", PAGES)
def test_files_and_folders_are_there(page: str) -> None:
    cited = set(_PATH.findall(text(page)))
    assert not [path for path in sorted(cited) if not exists(path)]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target, anchor in _LINK.findall(text(page)):
        if target.startswith("http"):
            continue
        there = (ROOT / page).parent / target if target else ROOT / page
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in headings}
            assert anchor[1:] in slugs, anchor


def test_objects_of_modules_are_there() -> None:
    sign = load_script("tools/sign_proofs.py")
    cited = set(_OBJECT.findall(text("docs/architecture.md"))) - {("module", "object")}
    assert len(cited) > 40
    for module, name in sorted(cited):
        where = "__init__" if module == "dpsubset" else module
        sign.fingerprint(f"{where}:{name}")  # raises if there is no such code


def test_the_layers_are_those_of_the_test() -> None:
    page = text("docs/architecture.md")
    table = page[page.index("| layer | what it holds |") : page.index("`proofs/` holds no code")]
    rows = [line.split("|")[1] for line in table.splitlines()[2:] if line.startswith("|")]
    named = [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]
    assert sorted(named) == sorted(load_script("tests/repo/test_layers.py").MAY_IMPORT)


def test_one_call_goes_the_way_that_the_page_says(tmp_path: Path) -> None:
    page = text("docs/architecture.md")
    walk = page[page.index("*Validate.*") : page.index("## Folder by folder")]
    cited = list(dict.fromkeys(f"{module}:{name}" for module, name in _OBJECT.findall(walk)))
    table, bounds = tmp_path / "patients.csv", tmp_path / "schema.yaml"
    table.write_text("age,cost,sex\n41,300,1\n30,200,0\n")
    bounds.write_text(
        "response: {name: cost, lo: 0, hi: 1000}\n"
        "columns: {age: {lo: 0, hi: 110}, sex: {lo: 0, hi: 1}}\n"
    )
    dps.select(table, bounds, k=1, epsilon=1)  # imports run the bodies of classes: not again
    called: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(PACKAGE):
            parts = file.relative_to(PACKAGE).with_suffix("").parts
            module = ".".join(parts).removesuffix(".__init__")
            called.setdefault(f"{module}:{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        dps.select(table, bounds, k=1, epsilon=1)
    finally:
        sys.setprofile(None)
    on_the_way = [name for name in cited if name in called]
    assert len(on_the_way) > 20
    assert on_the_way == [name for name in called if name in on_the_way]
