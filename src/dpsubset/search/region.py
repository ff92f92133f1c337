"""Regions: sets of supports, given by the features forced in, forced out and free.

Features are choices here, whatever columns they have. A region picks m features from a pool of free
ones, in addition to those forced in; a mistake bucket picks from two pools (the anchor's features
and the others). Its supports can be counted and drawn uniformly, exactly. Which regions a search
has depends on the table, so they are private.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..objective.problem import Problem
from ..privacy.random import Randomness
from .bounds.kernels import FREE, IN, OUT, POOLS


@dataclass(repr=False)  # which regions there are depends on the data
class Region:
    """A set of supports of equal size."""

    #: OUT, IN, or FREE + pool for each feature.
    status: NDArray[np.int8]
    #: The features forced in, sorted.
    members: NDArray[np.int64]
    #: How many features are picked from each pool.
    picks: tuple[int, int]
    #: How many features each pool has.
    sizes: tuple[int, int] = field(default=(0, 0))

    @classmethod
    def whole(cls, problem: Problem, size: int | None = None) -> Region:
        """All supports of a problem, of its size k or another size."""
        status = np.full(problem.p, FREE, dtype=np.int8)
        always = problem.always_include
        size = problem.k if size is None else size
        return cls._of(status, always, (size - len(always), 0))

    @classmethod
    def bucket(cls, problem: Problem, anchor: Sequence[int], mistakes: int) -> Region | None:
        """Supports with this many mistakes against an anchor; None if there are none."""
        status = np.full(problem.p, FREE + 1, dtype=np.int8)
        status[list(anchor)] = FREE
        always = problem.always_include
        missed = sum(j not in anchor for j in always)
        picks = (problem.k - mistakes - (len(always) - missed), mistakes - missed)
        region = cls._of(status, always, picks)
        return region if region.count() else None

    @classmethod
    def _of(
        cls, status: NDArray[np.int8], members: Sequence[int], picks: tuple[int, int]
    ) -> Region:
        forced = np.array(sorted(members), dtype=np.int64)
        status[forced] = IN
        for pool, m in enumerate(picks):
            if m == 0:  # forced out, which tightens bounds
                status[status == FREE + pool] = OUT
        sizes = tuple(int(np.count_nonzero(status == FREE + pool)) for pool in range(POOLS))
        return cls(status, forced, picks, sizes)  # type: ignore[arg-type]

    @property
    def size(self) -> int:
        """The number of features of each support."""
        return len(self.members) + sum(self.picks)

    def count(self) -> int:
        """The number of supports."""
        if min(self.picks) < 0:
            return 0
        return math.prod(map(math.comb, self.sizes, self.picks))

    def pool(self, pool: int) -> NDArray[np.int64]:
        """The free features of a pool."""
        return np.flatnonzero(self.status == FREE + pool)

    def supports(self) -> NDArray[np.int64]:
        """All supports as rows, in lexicographic order."""
        picks = [itertools.combinations(self.pool(i).tolist(), m) for i, m in enumerate(self.picks)]
        rows = [sorted([*self.members.tolist(), *a, *b]) for a, b in itertools.product(*picks)]
        return np.array(sorted(rows), dtype=np.int64).reshape(len(rows), self.size)

    def draw(self, rng: Randomness) -> tuple[int, ...]:
        """A uniform support."""
        chosen = [int(j) for j in self.members]
        for pool in range(POOLS):
            if self.picks[pool]:
                free = self.pool(pool)
                chosen += [int(free[i]) for i in rng.subset(len(free), self.picks[pool])]
        return tuple(sorted(chosen))

    def without(self, features: NDArray[np.bool_]) -> Region:
        """The supports that contain none of these free features."""
        status = np.where(features, OUT, self.status).astype(np.int8)
        sizes = tuple(int(np.count_nonzero(status == FREE + pool)) for pool in range(POOLS))
        return Region(status, self.members, self.picks, sizes)  # type: ignore[arg-type]

    def split(self, j: int) -> Iterator[Region]:
        """The non-empty children: supports with the free feature j, supports without it."""
        pool = int(self.status[j]) - FREE
        sizes = tuple(size - (i == pool) for i, size in enumerate(self.sizes))
        fewer = tuple(m - (i == pool) for i, m in enumerate(self.picks))
        with_j, without_j = self.status.copy(), self.status.copy()
        with_j[j], without_j[j] = IN, OUT
        at = int(np.searchsorted(self.members, j))
        halves = (
            Region(with_j, np.insert(self.members, at, j), fewer, sizes),  # type: ignore[arg-type]
            Region(without_j, self.members, self.picks, sizes),  # type: ignore[arg-type]
        )
        for half in halves:
            if half.count():
                if half.picks[pool] == 0:
                    half.status[half.status == FREE + pool] = OUT
                    half.sizes = tuple(0 if i == pool else size for i, size in enumerate(sizes))  # type: ignore[assignment]
                yield half
