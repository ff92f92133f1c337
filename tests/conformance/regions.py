"""Random regions of small problems, with bounds from scratch and down random paths."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.recipes import Recipe
from dpsubset.losses.least_squares import Scorer
from dpsubset.public.problem import Problem
from dpsubset.search.bounds.base import Bounded
from dpsubset.search.bounds.choose import bounder
from dpsubset.search.bounds.kernels import FREE, IN, OUT
from dpsubset.search.region import Region
from dpsubset.search.tuning import USUAL, Tuning
from dpsubset.table.digest import Digest


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
        digest = recipe.lazy() if lazy else Digest.from_moments(recipe.moments)
        self.scorer = Scorer(digest, recipe.problem, recipe.sensitivity.unit)
        self.bounder = bounder(digest, recipe.problem, self.scorer, eta, tuning)

    def bounds(self, count: int) -> Iterator[Bounded]:
        """Bounds of regions with two supports or more, as the engine would ask for them."""
        rng = self._rng
        while count > 0:
            if rng.random() < 0.3:
                region = Region.whole(self.recipe.problem)
            else:
                region = random_region(self.recipe.problem, rng)
            if region.count() < 2:
                continue
            bound = self.bounder.root(region, self._rounds())
            yield bound
            count -= 1
            # A fifth of the paths meets a stronger diagonal on the way.
            stronger = int(rng.integers(0, 15))
            for depth in range(12):
                if depth == stronger:
                    self.bounder.strengthen(bool(rng.random() < 0.5))
                free = np.flatnonzero(bound.region.status >= FREE)
                halves = [
                    half for half in bound.region.split(int(rng.choice(free))) if half.count() > 1
                ]
                if not halves or rng.random() < 0.05:
                    break
                half = halves[int(rng.integers(len(halves)))]
                bound = self.bounder.child(bound, half, self._rounds())
                yield bound
                count -= 1

    def _rounds(self) -> int:
        return int(self._rng.choice([0, 1, 2, 8, int(self._rng.integers(0, 41))]))
