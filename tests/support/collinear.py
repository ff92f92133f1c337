"""Small problems whose columns are alike: where a dual ascent has most to do, and most to lose.

`Collinear(...)` is all there is to a problem, as for `recipes.Recipe`. Sizes, signs and always
included choices follow from the seed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsubset.data.gram import GramData
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.schema.layout import STEPS, Layout
from dpsubset.search.enumerate import ScoredSupports, enumerate_supports
from dpsubset.search.tuning import Tuning
from support.recipes import CONSTRAINTS, REACHES, RIDGES
from support.regions import Walk

#: Clusters of columns that differ by this much noise.
NOISES = {"near 0.1": 0.1, "near 0.01": 0.01, "near 1e-4": 1e-4}
DESIGNS = (*NOISES, "AR 0.99", "trends", "one-hot", "polynomials", "linkage")
#: What a choice is, and whether there is an intercept.
LAYOUTS = ("plain", "intercept", "grouped", "grouped, intercept")


@dataclass(frozen=True)
class Collinear:
    """A problem on a data set, by its parameters."""

    design: str
    constraint: str
    size: str
    ridge: float
    layout: str
    seed: int
    copies: int = 1  # of every record: scores grow, and their grid does not

    @cached_property
    def sizes(self) -> list[int]:
        """How many columns each choice has: 6 to 12 choices."""
        rng = np.random.default_rng([self.seed, 0])
        p = int(rng.integers(6, 13))
        if not self.layout.startswith("grouped"):
            return [1] * p
        return rng.choice([1, 2, 3], p, p=[0.4, 0.4, 0.2]).tolist()

    @cached_property
    def problem(self) -> Problem:
        rng = np.random.default_rng([self.seed, 1])
        p, k = len(self.sizes), int(rng.integers(2, 5))
        # One level of a choice is on; the columns of other groups may all be at their ends.
        widths = [1] * p if self.design == "one-hot" else self.sizes
        always = rng.choice(p, int(rng.integers(0, k)), replace=False).tolist()
        return Problem.create(
            p,
            k,
            constraint=self.constraint,
            prediction_bound=REACHES[self.size],
            ridge=self.ridge,
            always_include=always if rng.random() < 0.3 else (),
            intercept=self.layout.endswith("intercept"),
            layout=Layout.of(self.sizes, widths),
        )

    @cached_property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity.of(self.problem)

    @cached_property
    def cells(self) -> np.ndarray:
        """Quantized columns, the intercept's among them, the response last."""
        rng = np.random.default_rng([self.seed, 2, DESIGNS.index(self.design)])
        n = int(rng.integers(15, 81))
        x = columns(self.design, n, self.sizes, rng)
        truth = rng.uniform(-1, 1, len(x)) * (rng.random(len(x)) < 0.4)
        y = np.clip(truth @ x / 2 + rng.uniform(-0.3, 0.3, n), -1, 1)
        level = float(self.problem.layout.intercept_value)
        constant = [np.full(n, level)] if level else []
        cells = np.tile(np.rint(np.vstack([x, *constant, y]) * STEPS), self.copies)
        return np.asarray(cells, dtype=np.int16, order="C")

    def lazy(self) -> GramData:
        """Columns of X'X on demand; on half of the problems there is room for a few only."""
        digest = GramData.of_cells(self.cells, "test")
        rng = np.random.default_rng([self.seed, 4, LAYOUTS.index(self.layout)])
        if rng.random() < 0.5:
            digest.cache_bytes = int(rng.integers(1, 7)) * digest.p * 8
        return digest

    def whole(self) -> GramData:
        """All of X'X at hand."""
        cells = self.cells.astype(np.int64)
        products = cells @ cells.T
        p = len(cells) - 1
        return GramData(
            columns=products,
            slot=np.arange(p),
            diagonal=np.ascontiguousarray(np.diagonal(products)[:p]),
            c=np.ascontiguousarray(products[:p, -1]),
            yy=int(products[-1, -1]),
            n=cells.shape[1],
            records=np.empty((0, 0), dtype=np.int16),
            fingerprint="test",
        )

    @cached_property
    def scored(self) -> ScoredSupports:
        """Every support with its score, by enumeration."""
        return enumerate_supports(self.whole(), self.problem, self.sensitivity.score_step)

    @cached_property
    def ranking(self) -> list[tuple[int, tuple[int, ...]]]:
        """All supports, best first, ties in lexicographic order."""
        scored = self.scored
        return sorted((int(scored.scores[i]), scored.support(i)) for i in range(len(scored)))

    def alike(self) -> float:
        """The median over columns of the largest |cosine| with another one."""
        x = self.cells[: sum(self.sizes)].astype(float)
        x = x[np.abs(x).max(axis=1) > 0]
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        cosines = np.abs(x @ x.T)
        np.fill_diagonal(cosines, 0.0)
        return float(np.median(cosines.max(axis=1)))


def columns(kind: str, n: int, sizes: list[int], rng: np.random.Generator) -> np.ndarray:
    """One row a column, in [-1, 1]."""
    p = sum(sizes)
    if kind in NOISES:
        clusters = rng.uniform(-1, 1, (int(rng.integers(2, 4)), n))
        signs = rng.choice([1.0, -1.0], (p, 1))
        x = clusters[rng.integers(len(clusters), size=p)] * signs
        x = x + NOISES[kind] * rng.normal(size=(p, n))
    elif kind == "AR 0.99":
        x = rng.normal(size=(p, n))
        for j in range(1, p):
            x[j] = 0.99 * x[j - 1] + np.sqrt(1 - 0.99**2) * x[j]
    elif kind == "trends":
        x = np.cumsum(rng.normal(size=(p, n)), axis=1)
        x /= np.abs(x).max(axis=1, keepdims=True)
    elif kind == "one-hot":
        # Every choice of several columns is a category. Single columns are levels of one, too.
        levels = [size if size > 1 else 0 for size in sizes]
        single = rng.integers(max(levels.count(0), 1), size=n)
        x, at, seen = np.zeros((p, n)), 0, 0
        for size, count in zip(sizes, levels, strict=True):
            on = rng.integers(count, size=n) if count else single - seen
            seen += not count
            for level in range(size):
                x[at + level] = on == level
            at += size
    elif kind == "polynomials":
        s, t = rng.uniform(-1, 1, (2, n))
        powers = [(i, 0) for i in range(1, p + 1)]
        if rng.random() < 0.5:
            powers = [(i, d - i) for d in range(1, p + 1) for i in range(d, -1, -1)]
        x = np.array([s**i * t**j for i, j in powers[:p]])
        x /= np.abs(x).max(axis=1, keepdims=True)
    else:  # 0, 1, 2 of two copies, each like its neighbour but for one row in twenty
        copies = (rng.random((2, n)) < 0.4).astype(float)
        rows = []
        for _ in range(p):
            fresh = rng.random((2, n)) < 0.05
            copies = np.where(fresh, rng.random((2, n)) < 0.4, copies)
            rows.append(copies.sum(axis=0) - 1)
        x = np.array(rows)
    return np.asarray(x / max(float(np.abs(x).max()), 1.0))


def collinear(
    designs: tuple[str, ...],
    constraints: tuple[str, ...],
    seeds: range,
    layouts: tuple[str, ...] = LAYOUTS,
) -> Iterator[Collinear]:
    """A table of problems."""
    table = itertools.product(designs, constraints, REACHES, RIDGES, layouts)
    for kind, constraint, size, ridge, layout in table:
        first = 10_000 * DESIGNS.index(kind) + 1000 * CONSTRAINTS.index(constraint)
        for seed in seeds:
            yield Collinear(kind, constraint, size, ridge, layout, first + seed)


class CollinearWalk(Walk):
    """A walk on which more columns may come to hand, too."""

    def _stronger(self) -> None:
        if self._rng.random() < 0.5:
            self.bound_oracle.widen()
        else:
            super()._stronger()


def walk(recipe: Collinear) -> tuple[CollinearWalk, str]:
    """Of random settings, and what they are."""
    about = [recipe.seed, 3, int(recipe.ridge > 0), int(recipe.size == "wide")]
    rng = np.random.default_rng([*about, LAYOUTS.index(recipe.layout)])
    tuning = Tuning(
        small=int(rng.choice([0, 0, 100])),
        anchor=int(rng.choice([0, 2])),
        last_pick=int(rng.choice([0, 0, 4096])),
        working_set=int(rng.choice([1, 3, 100, 100])),
    )
    eta, lazy = float(10 ** rng.uniform(-4, 6)), bool(rng.random() < 0.4)
    steps = CollinearWalk(recipe, rng, eta, lazy=lazy, tuning=tuning)
    return steps, f"{recipe} {tuning} eta={eta!r} lazy={lazy}"
