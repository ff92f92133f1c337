"""The worked example of docs/engine.md: one draw, told step by step.

    python tools/engine_example.py            print the numbers
    python tools/engine_example.py --write    and put them, and the picture, into docs/

Six variables, two to select, 15 supports: far too few to need a search, so that everything can be
shown. The engine would list them at once; here it is kept from listing more than one support, and
made impatient, so that it splits.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpsubset.data.moments import Moments
from dpsubset.mechanisms import PLAIN
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.schema.schema import Schema
from dpsubset.search.acceptance import Acceptance, ProposalTime
from dpsubset.search.bounds.base import Node
from dpsubset.search.engine import Engine, Leaf, Listed, Support
from dpsubset.search.enumerate import ScoredSupports, enumerate_supports
from dpsubset.search.race import Race
from dpsubset.search.tuning import Tuning

DOCS = Path(__file__).resolve().parent.parent / "docs"
NAMES = "abcdef"
P, K, ROWS, ETA = 6, 2, 60, Fraction(2)
SEED = 1609  # of the draw that is told
#: Lists of one support only, and a split after one or two rejected proposals.
IMPATIENT = Tuning(short=1, patience=0.6)
BEGIN, END = "<!-- example: {} -->\n```\n", "```\n<!-- end -->"


def table() -> tuple[np.ndarray, np.ndarray]:
    """Neighbouring variables are alike; the response follows a and d."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (ROWS, P))
    for j in range(1, P):
        x[:, j] = 0.8 * x[:, j - 1] + 0.2 * x[:, j]
    y = 0.5 * x[:, 0] + 0.5 * x[:, 3] + 0.4 * rng.uniform(-1, 1, ROWS)
    return x, np.clip(y, -1, 1)


def name(support: Sequence[int]) -> str:
    return "".join(NAMES[j] for j in sorted(support))


@dataclass
class TreeNode:
    """A region in the tree of the draw."""

    label: str
    supports: list[str]
    mass: float
    parts: list[TreeNode] = field(default_factory=list)
    split_on: str = ""


@dataclass
class Story:
    """What happened in one draw."""

    scored: ScoredSupports
    score_step: float
    first: Node
    gains: np.ndarray
    ref: float
    root: TreeNode
    lines: list[str]
    winner: str


class TalkingRace(Race):
    """A race that writes down its splits and proposals."""

    def __init__(self, engine: Engine) -> None:
        self.lines: list[str] = []
        self.nodes: dict[int, TreeNode] = {}
        super().__init__(engine, ETA, permute_and_flip=False)
        whole = self._leaves[0]
        self.root = self.nodes[id(whole)] = self.node(whole, "all")

    def share(self, mass: int) -> float:
        return float(Fraction(mass, 1 << self._scale.bits))

    def node(self, leaf: Leaf, label: str) -> TreeNode:
        place = self._leaves.index(leaf)
        rows = leaf.supports if isinstance(leaf, Listed) else leaf.region.supports().tolist()
        return TreeNode(label, [name(row) for row in rows], self.share(self._masses._values[place]))

    def replace(self, leaf: Node, parts: Sequence[Leaf]) -> None:
        super().replace(leaf, parts)
        node = self.nodes[id(leaf)]
        node.split_on = letter = NAMES[leaf.branch_on]
        for part in parts:
            inside = letter in self.node(part, "").supports[0]
            child = self.node(part, f"with {letter}" if inside else f"without {letter}")
            node.parts.append(child)
            self.nodes[id(part)] = child
        masses = ", ".join(f"{part.label}: {part.mass:.3f}" for part in node.parts)
        self.lines.append(f"split    on {letter}; new masses  {masses}")
        self.lines.append(f"         total mass {self.share(self._masses.total):.3f}")

    def _acceptance(
        self, place: int, support: Support, mass: int, time: ProposalTime | None = None
    ) -> Acceptance:
        line = f"propose  {name(support)}  mass {self.share(mass):.3f}  accept with probability "
        return TalkingChance(self, line, self._scale, self._engine.score(support), mass, time)


class TalkingChance(Acceptance):
    """A flip that tells how it came out."""

    def __init__(self, race: TalkingRace, line: str, *about: Any) -> None:
        super().__init__(*about)
        self._race, self._line = race, line

    def flip(self, rng: Randomness) -> bool:
        accepted = super().flip(rng)
        verdict = "accepted" if accepted else "rejected"
        self._race.lines.append(f"{self._line}{self.approximate:.3f}: {verdict}")
        return accepted


def tell() -> Story:
    """Draw once, and remember everything."""
    schema = Schema.from_bounds(dict.fromkeys(NAMES, (-1, 1)), ("y", -1, 1))
    moments = Moments.from_blocks(schema, [table()])
    problem = Problem.create(P, K, intercept=False)
    score_step = Sensitivity.of(problem).score_step
    scored = enumerate_supports(moments, problem, score_step)
    engine = Engine(moments, problem, score_step, float(ETA), tuning=IMPATIENT)
    race = TalkingRace(engine)
    first = race._leaves[0]
    assert isinstance(first, Node)
    gains = engine.bound_oracle.gains(first)
    winner = race.draw(Randomness(SeededSource(SEED)))
    ref = race._scale.ref * float(score_step)
    return Story(scored, float(score_step), first, gains, ref, race.root, race.lines, name(winner))


def scores_text(story: Story) -> str:
    scored, eta = story.scored, float(ETA)
    chances = {key: cls().probabilities(scored, ETA) for key, cls in PLAIN.items()}
    lines = ["support      f      q   bound   mass   exponential   permute-and-flip"]
    for i in np.argsort(scored.scores, kind="stable"):
        f, support = float(scored.scores[i]) * story.score_step, scored.support(int(i))
        bound = story.first.base - float(story.gains[list(support)].sum())
        lines.append(
            f"{name(support):>7}  {f:5.2f}  {np.exp(eta * (story.ref - f)):5.3f}  {bound:6.2f}  "
            f"{np.exp(eta * (story.ref - bound)):5.3f}  {chances['exponential'][i]:12.4f}  "
            f"{chances['permute-and-flip'][i]:17.4f}"
        )
    return "\n".join(lines) + "\n"


def root_text(story: Story) -> str:
    gains = "   ".join(f"{NAMES[j]} {story.gains[j]:.2f}" for j in range(P))
    q = np.exp(float(ETA) * (story.ref - story.scored.scores * story.score_step))
    return (
        f"base {story.first.base:.2f}, gains   {gains}\n"
        f"sum of all q {q.sum():.3f}, total mass of the root {story.root.mass:.3f}\n"
    )


def draw_text(story: Story) -> str:
    return "\n".join([*story.lines, f"released {story.winner}"]) + "\n"


def picture(story: Story) -> str:
    """The tree of the draw as SVG."""
    boxes: list[str] = []
    leaves = iter(range(100))
    width, step, drop = 164, 178, 96

    def place(node: TreeNode, depth: int) -> tuple[float, float]:
        spots = [place(part, depth + 1) for part in node.parts]
        x = sum(s[0] for s in spots) / len(spots) if spots else 96 + step * next(leaves)
        y = 14 + drop * depth
        boxes.extend(
            f'<line x1="{x:.0f}" y1="{y + 58}" x2="{sx:.0f}" y2="{sy}" class="edge"/>'
            for sx, sy in spots
        )
        won = story.winner in node.supports
        count = len(node.supports)
        what = node.supports[0] if count == 1 else f"{count} supports"
        last = f"split on {node.split_on}" if node.parts else ("released" if won else "leaf")
        if won and not node.parts and count > 1:
            last = f"released: {story.winner}"
        boxes.append(
            f'<rect x="{x - width / 2:.0f}" y="{y}" width="{width}" height="58" rx="6" '
            f'class="{"won" if won else "box"}"/>'
        )
        texts = (f"{node.label}: {what}", f"mass {node.mass:.3f}", last)
        boxes.extend(
            f'<text x="{x:.0f}" y="{y + 17 + 17 * i}">{text}</text>' for i, text in enumerate(texts)
        )
        return x, y

    def depth_of(node: TreeNode) -> int:
        return 1 + max((depth_of(part) for part in node.parts), default=0)

    place(story.root, 0)
    total, high = 14 + step * next(leaves), 14 + drop * depth_of(story.root) - 24
    style = (
        "text{font:13px sans-serif;text-anchor:middle;fill:#222}"
        ".box{fill:#f4f4f0;stroke:#777}.won{fill:#dcebdc;stroke:#2f6b2f;stroke-width:2}"
        ".edge{stroke:#777}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {high}" '
        f'width="{total}" height="{high}" role="img">\n'
        f"<title>The tree of one draw</title>\n<style>{style}</style>\n"
        f'<rect width="{total}" height="{high}" fill="white"/>\n' + "\n".join(boxes) + "\n</svg>\n"
    )


def blocks(story: Story) -> dict[str, str]:
    """The texts that docs/engine.md includes, by name."""
    return {"scores": scores_text(story), "root": root_text(story), "draw": draw_text(story)}


def main() -> int:
    story = tell()
    texts = blocks(story)
    print("\n".join(texts.values()))
    if "--write" in sys.argv[1:]:
        page = (DOCS / "engine.md").read_text(encoding="utf-8")
        for key, text in texts.items():
            before, rest = page.split(BEGIN.format(key))
            page = before + BEGIN.format(key) + text + rest[rest.index(END) :]
        (DOCS / "engine.md").write_text(page, encoding="utf-8")
        (DOCS / "engine-tree.svg").write_text(picture(story), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
