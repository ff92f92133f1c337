"""Small random problems of every awkward kind, each reproducible from what it prints.

`Recipe(...)` is all there is to a problem: the design, the coefficient set and how tight it is, the
ridge, a seed. Always included columns, and sizes unless given, follow from the seed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsubset.constraints import CONSTRAINTS as _REGISTERED
from dpsubset.data.gram import GramData
from dpsubset.data.moments import Moments
from dpsubset.data.quantize import STEPS
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.schema.schema import Schema
from dpsubset.search.enumerate import ScoredSupports, enumerate_supports

DESIGNS = ("orthogonal", "AR 0.9", "duplicated", "constant", "n < p", "one-hot")
#: Every constraint, so that tests find a new one.
CONSTRAINTS = tuple(_REGISTERED)
#: Reaches at which the constraint binds on nearly every support, and on nearly none.
REACHES = {"tight": 0.2, "wide": 20.0}
RIDGES = (0.0, 2.5)


@dataclass(frozen=True)
class Recipe:
    """A problem on a data set, by its parameters."""

    design: str
    constraint: str
    size: str
    ridge: float
    seed: int
    p: int = 0  # 0: as the seed says

    @cached_property
    def problem(self) -> Problem:
        rng = np.random.default_rng(self.seed)
        p = self.p or int(rng.integers(5, 11))
        k = int(rng.integers(2, 4 if self.p else 5))
        most = k if self.seed % 8 == 0 else k - 1
        count = int(rng.integers(0, most + 1)) if self.seed % 3 else 0
        always = rng.choice(p, count, replace=False).tolist()
        return Problem.create(p, k, constraint=self.constraint, prediction_bound=REACHES[self.size],
                             ridge=self.ridge, always_include=always, intercept=False)  # fmt: skip

    @cached_property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity.of(self.problem)

    @cached_property
    def records(self) -> np.ndarray:
        """Quantized records, the response last."""
        p = self.problem.p
        rng = np.random.default_rng([self.seed, DESIGNS.index(self.design)])
        x = design(self.design, p, rng)
        n = len(x)
        truth = rng.uniform(-1, 1, p) * (rng.random(p) < 0.5)
        y = np.clip(x @ truth / 2 + rng.uniform(-0.3, 0.3, n), -1, 1)
        if self.seed % 7 == 0:
            y = np.sign(y)  # round numbers: more ties
        return np.rint(np.column_stack([x, y]) * STEPS).astype(np.int64)

    @cached_property
    def schema(self) -> Schema:
        return Schema.from_bounds({f"x{j}": (-1, 1) for j in range(self.problem.p)}, ("y", -1, 1))

    @property
    def blocks(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The records as a table of scaled values in two parts."""
        cells = self.records / STEPS
        half = len(cells) // 2
        return [(part[:, :-1], part[:, -1]) for part in (cells[:half], cells[half:])]

    @cached_property
    def moments(self) -> Moments:
        return Moments.from_blocks(self.schema, self.blocks)

    def whole(self) -> GramData:
        """All of X'X at hand."""
        return GramData.from_moments(self.moments)

    def lazy(self) -> GramData:
        """Columns of X'X on demand, none at hand yet."""
        return GramData.from_records(self.schema, self.blocks)

    @cached_property
    def scored(self) -> ScoredSupports:
        """Every support with its score, by enumeration."""
        return enumerate_supports(self.moments, self.problem, self.sensitivity.score_step)

    @cached_property
    def ranking(self) -> list[tuple[int, tuple[int, ...]]]:
        """All supports, best first, ties in lexicographic order."""
        scored = self.scored
        return sorted((int(scored.scores[i]), scored.support(i)) for i in range(len(scored)))


def design(kind: str, p: int, rng: np.random.Generator) -> np.ndarray:
    """A matrix of cells in [-1, 1] with p columns."""
    n = int(rng.integers(2, p)) if kind == "n < p" else int(rng.integers(p + 4, 60))
    x = rng.uniform(-1, 1, (n, p))
    if kind == "orthogonal":
        x = np.linalg.qr(x)[0]
        x /= np.abs(x).max()
    elif kind == "AR 0.9":
        x = rng.normal(size=(n, p))
        for j in range(1, p):
            x[:, j] = 0.9 * x[:, j - 1] + np.sqrt(1 - 0.81) * x[:, j]
        x /= np.abs(x).max()
    elif kind == "duplicated":
        for j in range(1, p):
            if rng.random() < 0.6:
                x[:, j] = x[:, rng.integers(j)] * rng.choice([1.0, -1.0])
    elif kind == "constant":
        for j in range(p):
            if rng.random() < 0.5:
                x[:, j] = rng.choice([0.0, 1.0, -1.0, 0.25])
    elif kind == "one-hot":
        x[:] = 0.0
        at = 0
        while at < p:
            levels = min(int(rng.integers(2, 5)), p - at)
            x[np.arange(n), at + rng.integers(levels, size=n)] = 1.0
            at += levels
    return x


def recipes(
    designs: tuple[str, ...], constraints: tuple[str, ...], seeds: range
) -> Iterator[Recipe]:
    """A table of problems."""
    for kind, constraint, size, ridge in itertools.product(designs, constraints, REACHES, RIDGES):
        first = 1000 * DESIGNS.index(kind) + 100 * CONSTRAINTS.index(constraint)
        for seed in seeds:
            yield Recipe(kind, constraint, size, ridge, first + seed)
