"""Small problems whose choices have several columns, with an intercept or without.

A choice is a number, a category with one 0/1 column a level, a number with an indicator of missing
cells, or a group of numbers. The oracle of a score knows no choices: it is a plain problem on the
columns that they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsubset.data.gram import GramData
from dpsubset.objective.losses import scorer
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.schema.layout import STEPS, Layout
from dpsubset.search.enumerate import list_supports

KINDS = ("number", "levels", "indicator", "group")


@dataclass(frozen=True)
class LayoutRecipe:
    """A problem and its records, from a seed."""

    loss: str
    constraint: str
    intercept: bool
    seed: int

    @cached_property
    def kinds(self) -> list[tuple[str, int]]:
        """Of each choice: what it is, and how many columns it has."""
        rng = np.random.default_rng([self.seed, 0])
        kinds = [str(rng.choice(KINDS)) for _ in range(int(rng.integers(3, 7)))]
        sizes = {"number": 1, "indicator": 2}
        return [(kind, sizes.get(kind) or int(rng.integers(2, 7))) for kind in kinds]

    @cached_property
    def problem(self) -> Problem:
        rng = np.random.default_rng([self.seed, 1])
        p = len(self.kinds)
        k = int(rng.integers(1, min(p, 4)))
        widths = [size if kind == "group" else 1 for kind, size in self.kinds]
        always = rng.choice(p, int(rng.integers(0, k)), replace=False).tolist()
        return Problem.create(
            p,
            k,
            loss=self.loss,
            constraint=self.constraint,
            prediction_bound=float(rng.choice([0.4, 1.0, 2.5])),
            ridge=float(rng.choice([0.0, 0.0, 1.5])),
            always_include=always if rng.random() < 0.3 else (),
            intercept=self.intercept,
            layout=Layout.of([size for _, size in self.kinds], widths),
        )

    @cached_property
    def digest(self) -> GramData:
        rng = np.random.default_rng([self.seed, 2])
        n = int(rng.integers(3, 40))
        columns: list[np.ndarray] = []
        for kind, size in self.kinds:
            numbers = rng.integers(-STEPS, STEPS + 1, (size, n))
            if rng.random() < 0.3:  # corners, and columns that are alike
                numbers = np.where(numbers[:1] < 0, -STEPS, STEPS) * np.ones((size, 1), dtype=int)
            if kind == "levels":
                on = rng.integers(-1, size, n)  # -1: a cell with none of them
                numbers = np.where(np.arange(size)[:, None] == on, STEPS, 0)
            elif kind == "indicator":
                gone = rng.random(n) < 0.3
                numbers = np.vstack([np.where(gone, 0, numbers[0]), np.where(gone, STEPS, 0)])
            columns.append(numbers)
        if self.intercept:
            columns.append(np.full((1, n), self.problem.layout.constant))
        x = np.vstack(columns)
        noise = rng.integers(-STEPS, STEPS + 1, n) * 0.3
        y = x[0] * 0.6 - x[-1] * 0.4 + noise + (STEPS // 3 if rng.random() < 0.5 else 0)
        cells = np.vstack([x, np.clip(np.rint(y), -STEPS, STEPS)])
        return GramData.of_cells(np.asarray(cells, dtype=np.int16, order="C"), "test")

    @cached_property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity.of(self.problem)

    @cached_property
    def ranking(self) -> list[tuple[int, tuple[int, ...]]]:
        """Scores of all supports, best first, from plain problems on their columns."""
        problem, unit = self.problem, self.sensitivity.score_step
        starts = np.cumsum([0, *(size for _, size in self.kinds)])
        ranked = []
        for support in list_supports(problem).tolist():
            columns = [i for j in support for i in range(starts[j], starts[j + 1])]
            columns += [int(starts[-1])] if self.intercept else []
            plain = Problem(
                self.digest.p, len(columns), problem.constraint, problem.radius, problem.ridge,
                problem.neighbours, (), problem.loss, problem.threshold,
            )  # fmt: skip
            # The same row loss: it may know the reach.
            oracle = scorer(self.digest, plain, unit)
            if hasattr(oracle, "row_loss"):
                oracle.row_loss = scorer(self.digest, problem, unit).row_loss  # type: ignore[attr-defined]
            ranked.append(
                (int(oracle.scores(np.array([columns], dtype=np.int64))[0]), tuple(support))
            )
        return sorted(ranked)


def layout_recipes(losses: tuple[str, ...], seeds: range) -> Iterator[LayoutRecipe]:
    """Every loss with every constraint, with an intercept and without."""
    for number, loss in enumerate(losses):
        for other, constraint in enumerate(("box", "ball", "l1")):
            for intercept in (True, False):
                for seed in seeds:
                    yield LayoutRecipe(
                        loss, constraint, intercept, seed + 1000 * (6 * number + 2 * other)
                    )
