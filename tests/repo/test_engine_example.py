"""The worked example of docs/engine.md is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from support.tools import load_script

ROOT = Path(__file__).parents[2]


example = load_script("tools/engine_example.py")
STORY = example.tell()
PAGE = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")


def test_the_page_shows_these_numbers() -> None:
    for key, text in example.blocks(STORY).items():
        shown = example.BEGIN.format(key) + text + example.END
        assert shown in PAGE, "run tools/engine_example.py --write, and read the page again"


def test_the_picture_shows_this_tree() -> None:
    drawn = (ROOT / "docs" / "engine-tree.svg").read_text(encoding="utf-8")
    assert drawn == example.picture(STORY)


def test_the_story_has_what_the_page_tells() -> None:
    """A rejection, a split on a, another, and ad."""
    kinds = [line.split()[0] for line in STORY.lines if not line.startswith(" ")]
    assert kinds == ["propose", "split", "propose", "split", "propose"]
    assert [line.split()[1] for line in STORY.lines if line.startswith("propose")] == [
        "ab", "ef", "ad",
    ]  # fmt: skip
    assert re.search(r"split +on a;", "\n".join(STORY.lines))
    assert STORY.winner == "ad"


def test_masses_are_never_below_the_weights() -> None:
    leaves = []
    stack = [STORY.root]
    while stack:
        node = stack.pop()
        stack += node.parts
        if not node.parts:
            leaves.append(node)
    assert sorted(s for leaf in leaves for s in leaf.supports) == sorted(STORY.root.supports)
    scored = STORY.scored
    for leaf in leaves:
        q = sum(
            2.718281828459045 ** (float(example.ETA) * (STORY.ref - score * STORY.score_step))
            for i, score in enumerate(scored.scores.tolist())
            if example.name(scored.support(i)) in leaf.supports
        )
        assert leaf.mass >= q * (1 - 1e-12)
