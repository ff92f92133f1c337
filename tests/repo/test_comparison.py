"""The comparison page says what the mechanisms declare."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from dpsubset.mechanisms import MECHANISMS, PLAIN
from support.tools import load_script

ROOT = Path(__file__).parents[2]


comparison = load_script("tools/comparison.py")
PAGE = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")


def test_the_page_is_up_to_date() -> None:
    assert comparison.page() == PAGE, "run tools/comparison.py --write, and read the page again"


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_is_on_it(name: str) -> None:
    cls = MECHANISMS[name]
    section = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
    for text in (
        cls.summary,
        cls.promises,
        cls.assumes,
        cls.running_time,
        cls.use_when,
        cls.source,
    ):
        assert text in section
    for option in fields(cls):
        assert f"| `{option.name}` |" in section


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_declared_makes_sentences(name: str) -> None:
    # The page and the statement put their own words and full stops around these.
    cls = MECHANISMS[name]
    for text in (cls.promises, cls.assumes, cls.running_time, cls.use_when, cls.source):
        assert text == text.strip()
        assert not text.endswith(".")
        assert "|" not in text.replace("|x_j'y|", "")
    assert cls.summary.endswith(".")


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert len(links) >= len(MECHANISMS)
    for link in links:
        assert (ROOT / "docs" / link).exists(), link


def test_the_introduction_names_mechanisms_that_exist() -> None:
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", comparison.INTRODUCTION))
    assert named
    assert named <= set(MECHANISMS)


def test_options_come_from_fields_and_docstrings() -> None:
    @dataclass(frozen=True)
    class Twin(PLAIN["exponential"]):  # type: ignore[misc, name-defined]
        """A twin.

        Attributes
        ----------
        depth : int
            How deep,
            in steps.
        """

        depth: int = 3
        width: int | None = None

    section = comparison.section(Twin)
    assert "| `depth` | `3` | How deep, in steps. |" in section
    assert "| `width` | none |  |" in section
