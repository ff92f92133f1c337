"""Random regions of small problems, with bounds from scratch and down random paths."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Protocol

import numpy as np

from dpsubset.data.gram import GramData
from dpsubset.objective.losses.least_squares import Scorer
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.search.bounds.base import BoundOracle, Node
from dpsubset.search.bounds.choose import bound_oracle
from dpsubset.search.bounds.kernels import FREE, IN, OUT
from dpsubset.search.region import Region
from dpsubset.search.tuning import USUAL, Tuning


def random_region(problem: Problem, rng: np.random.Generator) -> Region:
    """Anything forced in and out, one pool or two; with one support at least."""
    while True:
        status = rng.choice([OUT, IN, FREE, FREE + 1], problem.p, p=rng.dirichlet([0.3, 0.3, 2, 1]))
        members = np.flatnonzero(status == IN)
        left = problem.k - len(members)
        sizes = [int(np.count_nonzero(status == FREE + pool)) for pool in range(2)]
        if left < 0:
            continue
        first = int(rng.integers(0, left + 1))
        region = Region(
            status.astype(np.int8), members, (first, left - first), (sizes[0], sizes[1])
        )
        if region.count():
            return region


def random_path(
    bound_oracle: BoundOracle, region: Region, rng: np.random.Generator, rounds: int
) -> Iterator[Node]:
    """Bounds from a region down to one support, by random splits."""
    bound = bound_oracle.root(region, rounds)
    yield bound
    while len(free := np.flatnonzero(bound.region.status >= FREE)):
        halves = list(bound.region.split(int(rng.choice(free))))
        half = halves[int(rng.integers(len(halves)))]
        bound = bound_oracle.child(bound, half, int(rng.integers(0, 9)))
        yield bound


class Recipe(Protocol):
    """A problem and its data."""

    @property
    def problem(self) -> Problem: ...

    @property
    def sensitivity(self) -> Sensitivity: ...

    def whole(self) -> GramData: ...

    def lazy(self) -> GramData: ...


class Walk:
    """Bounds of random regions of a problem: the root's, or down a random path of splits."""

    def __init__(
        self,
        recipe: Recipe,
        rng: np.random.Generator,
        eta: float,
        *,
        lazy: bool,
        tuning: Tuning = USUAL,
    ) -> None:
        self.recipe, self._rng = recipe, rng
        digest = recipe.lazy() if lazy else recipe.whole()
        self.scorer = Scorer(digest, recipe.problem, recipe.sensitivity.score_step)
        self.bound_oracle = bound_oracle(digest, recipe.problem, self.scorer, eta, tuning)

    def bounds(self, count: int) -> Iterator[Node]:
        """Bounds of regions with two supports or more, as the engine would ask for them."""
        rng = self._rng
        while count > 0:
            if rng.random() < 0.3:
                region = Region.whole(self.recipe.problem)
            else:
                region = random_region(self.recipe.problem, rng)
            if region.count() < 2:
                continue
            bound = self.bound_oracle.root(region, self._rounds())
            yield bound
            count -= 1
            # A fifth of the paths meets a stronger diagonal on the way.
            stronger = int(rng.integers(0, 15))
            for depth in range(12):
                if depth == stronger:
                    self._stronger()
                free = np.flatnonzero(bound.region.status >= FREE)
                halves = [
                    half for half in bound.region.split(int(rng.choice(free))) if half.count() > 1
                ]
                if not halves or rng.random() < 0.05:
                    break
                half = halves[int(rng.integers(len(halves)))]
                bound = self.bound_oracle.child(bound, half, self._rounds())
                yield bound
                count -= 1

    def _stronger(self) -> None:
        self.bound_oracle.strengthen(bool(self._rng.random() < 0.5))

    def _rounds(self) -> int:
        return int(self._rng.choice([0, 1, 2, 8, int(self._rng.integers(0, 41))]))


def picks(bound: Node, supports: np.ndarray) -> np.ndarray:
    """Each support without what the region forces in."""
    region = bound.region
    free = supports[~np.isin(supports, region.members)]
    return free.reshape(len(supports), sum(region.picks))


def worst(bound: Node, bound_oracle: BoundOracle, scorer: Scorer) -> Fraction:
    """Largest excess of the bound over a score, exact where float64 cannot tell; <= 0 if valid."""
    supports = bound.region.supports()
    f = scorer.scores(supports) * scorer.score_step_float  # exact: the unit is a power of two
    g = bound_oracle.gains(bound)
    parts = g[picks(bound, supports)]
    excess = bound.base - parts.sum(axis=1) - f
    size = abs(bound.base) + parts.sum(axis=1) + np.abs(f)
    found = Fraction(max(float(bound.lower_bound - f.min()), -1.0))
    assert (parts >= 0).all()
    for i in np.flatnonzero(excess > -(2.0**-48) * size):
        gains = sum((Fraction(float(part)) for part in parts[i]), Fraction(0))
        found = max(found, Fraction(bound.base) - gains - Fraction(float(f[i])))
    return found
