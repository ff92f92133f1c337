"""Certified modular lower bounds on the score over a region: what all bounders share.

    f~(S) * unit >= base - sum over the picked choices j of g_j   for every S of the region

A dual point has a place for each column of the model, and each column a gain; a choice's gain is
the sum over its columns. Gains of columns that every support has, the intercept's, are in the base.

The dual points come from kernels; here they become bounds that hold for the program: every rounding
on the way (sums of columns, updates of u, the gains) and the numerical error tau of the score are
subtracted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import ROUNDING, Array, Ints
from ...constraints.base import extra
from ...objective.losses import Scorer
from ...objective.problem import Problem
from ..region import Region
from ..tuning import Tuning
from . import kernels
from .blocked import Blocked
from .kernels import CARRIED, CARRIED_ERROR, MU, NU, U_ERROR
from .solved import Solved

_EVERYWHERE = np.empty(0, dtype=np.bool_)
_ONE_EACH: Ints = np.empty(0, dtype=np.int64)


class Bounded:
    """A region with a dual point b and the modular bound that follows from it.

    Attributes
    ----------
    base : float
        What no picked choice carries.
    flat : float
        Lower bound for the whole region.
    leaders : list of int
        The picks that attain it.
    lead : int
        The choice to branch on.
    waste : float
        How much the race has lost here.
    """

    __slots__ = (
        "b", "base", "blocks", "c", "core", "d", "fixed", "flat", "lead", "leaders", "point",
        "region", "solved", "u", "waste", "yy",
    )  # fmt: skip

    def __init__(
        self, region: Region, c: Array, yy: float, d: Array, b: Array, u: Array,
        point: Array,
    ) -> None:  # fmt: skip
        self.region = region
        self.c, self.yy = c, yy
        self.d, self.b, self.u, self.point = d, b, u, point
        # Where b has to stay, but for members, for d to be valid; empty for everywhere.
        self.core: NDArray[np.bool_] = _EVERYWHERE
        self.fixed: Array | None = None  # gains from known scores, where one pick is left
        self.blocks: Blocked | None = None  # another bound, for races, where columns are alike
        self.solved: Solved | None = None  # and one for each of its supports, where they are few
        self.base = self.flat = -np.inf
        self.leaders: list[int] = []
        self.lead = -1
        self.waste = 0.0

    @classmethod
    def fresh(cls, region: Region, c: Array, yy: float, d: Array, size: int) -> Bounded:
        """With the dual point 0, of ``size`` numbers."""
        point = np.zeros(kernels.PLACES)
        return cls(region, c, yy, d, np.zeros(size), np.zeros(len(c)), point)

    def inherited(self, region: Region) -> Bounded:
        """A part of the region, with a copy of this dual point, which is valid there too."""
        bound = Bounded(region, self.c, self.yy, self.d, self.b.copy(), self.u.copy(),
                      self.point.copy())  # fmt: skip
        bound.core = self.core
        if self.fixed is not None:
            # A last pick that is a member now has no gain any more: it is part of the base.
            forced = np.setdiff1d(region.members, self.region.members)
            bound.fixed, bound.base = self.fixed, self.base - float(self.fixed[forced].sum())
        return bound

    def guess(self) -> tuple[int, ...]:
        """The support that attains the bound: a good first candidate."""
        return tuple(sorted([*(int(j) for j in self.region.members), *self.leaders]))


class Bounder(ABC):
    """Computes bounds for the regions of one problem on one data set.

    Parameters
    ----------
    c, yy : array, float
        X'y and y'y, or what takes their place.
    largest : float
        The size of anything that is added up on the way to a gain: no entry of H or c is larger.
    eta : float
        The weight of the scores that bounds should be good for.
    """

    def __init__(
        self, problem: Problem, scorer: Scorer, tuning: Tuning, *, c: Array, yy: float,
        largest: float, eta: float,
    ) -> None:  # fmt: skip
        self.problem, self.tuning = problem, tuning
        self.constraint = problem.coefficients
        self.c, self.yy, self.eta = c, yy, eta
        #: Most candidates for the last pick, and most supports of a region, that are worth scoring
        #: one by one where bounds and splits would do.
        self.most_closed, self.most_listed = tuning.last_pick, tuning.listable
        self.hard_after = tuning.hard_after
        many = problem.columns > tuning.whole
        self.wide_after = tuning.wide_after_many if many else tuning.wide_after
        self._scorer = scorer
        self._largest = largest
        #: What is taken out of H as a diagonal: at least the ridge always can be.
        self._d = np.full(problem.columns, problem.ridge)
        self._starts = problem.layout.starts if problem.layout.grouped else _ONE_EACH

    @abstractmethod
    def root(self, region: Region, rounds: int = 40) -> Bounded:
        """A bound from scratch."""

    def child(self, parent: Bounded, region: Region, rounds: int = 8) -> Bounded:
        """A bound that starts from the parent's dual point, which is valid here too."""
        return self._settle(parent.inherited(region), rounds)

    def widen(self) -> None:  # noqa: B027
        """Look at more columns in the regions to come: the search is not an easy one."""

    def block(self, bound: Bounded, parent: Bounded | None = None) -> None:  # noqa: B027
        """Give a bound its ``blocks``, if there are any: its parent's, if it has one."""

    def solve(self, bound: Bounded) -> Solved | None:
        """Where a region has few supports, what can be said of each; None if that is nothing."""
        return None

    @abstractmethod
    def strengthen(self, sweeps: bool) -> None:
        """Take more trouble for the regions to come: the search turns out to be a hard one.

        With ``sweeps``, a very hard one.
        """

    @abstractmethod
    def _improve(self, bound: Bounded, rounds: int) -> None:
        """A better dual point for the region."""

    def penalty(self, region: Region) -> float:
        """What the score adds for the size of a region's supports."""
        return float(self._scorer.penalty * self._scorer.score_step_float * region.size)

    def gains(self, bound: Bounded) -> Array:
        """g_j of every choice of the region."""
        if bound.fixed is not None:
            return bound.fixed
        return self.problem.layout.of_choices(self._column_gains(bound))

    def _column_gains(self, bound: Bounded) -> Array:
        g = np.empty(self.problem.columns)
        kernels.gains(bound.c, bound.u, self._cells(bound.region), self.constraint, bound.d,
                      bound.point[MU], bound.point[NU], g)  # fmt: skip
        return g

    def _cells(self, region: Region) -> NDArray[np.int8]:
        """For every column of the model: forced out, forced in, or free."""
        return self.problem.layout.of_status(region.status, kernels.IN)

    def _members(self, region: Region) -> Ints:
        """The columns that all supports of a region have."""
        return self.problem.layout.of_support(region.members)

    def _picks(self, region: Region) -> kernels.Picks:
        """A region as kernels take it."""
        return kernels.Picks(region.status, self._cells(region), self._members(region),
                             np.array(region.picks), self._starts)  # fmt: skip

    def _settle(self, bound: Bounded, rounds: int) -> Bounded:
        region = bound.region
        penalty = self.penalty(region)
        if bound.fixed is None and sum(region.picks) == 1 and self._can_close(region):
            self._score_last_pick(bound)
        if bound.fixed is not None:
            g = bound.fixed
        else:
            self._improve(bound, rounds)
            each = self._column_gains(bound)
            g = self.problem.layout.of_choices(each)
            forced = float(each[self._members(region)].sum())
            point = bound.point
            carried = float(point[CARRIED])
            if self.constraint.is_joint():  # else there is nothing extra
                carried += extra(self.constraint, point[MU], point[NU])
            bound.base = bound.yy + penalty - carried - forced
            highest = max(float(each.max()), float(g.max()))
            bound.base -= self._margin(bound, carried, highest, penalty)
        bound.leaders = self._leaders(region, g)
        gained = float(g[bound.leaders].sum())
        bound.flat = bound.base - gained - 8 * ROUNDING * (self.yy + penalty)
        bound.lead = max(bound.leaders, key=lambda j: g[j], default=-1)
        return bound

    def _can_close(self, region: Region) -> bool:
        return sum(region.sizes) <= self.most_closed

    def _score_last_pick(self, bound: Bounded) -> None:
        """With one pick left every function of it is modular: take the scores themselves."""
        region = bound.region
        free = np.flatnonzero(region.status >= kernels.FREE)
        # A pool with nothing to pick is as good as out.
        free = free[[region.picks[int(region.status[j]) - kernels.FREE] > 0 for j in free]]
        supports = np.empty((len(free), region.size), dtype=np.int64)
        supports[:, :-1] = region.members
        supports[:, -1] = free
        supports.sort(axis=1)
        scores = self._scorer.scores(supports) * self._scorer.score_step_float
        worst = float(scores.max())
        bound.fixed = np.zeros(self.problem.p)
        bound.fixed[free] = worst - scores
        # No allowance for tau, but one for the rounding on the way from scores to masses.
        bound.base = worst - (4 * self.problem.most_columns + 64) * ROUNDING * (self.yy + worst)

    def _leaders(self, region: Region, g: Array) -> list[int]:
        leaders: list[int] = []
        for pool, m in enumerate(region.picks):
            if m:
                top = np.empty(m, dtype=np.int64)
                kernels.largest(g, region.status, pool, m, top)
                leaders += top.tolist()
        return leaders

    def _margin(self, bound: Bounded, carried: float, highest: float, penalty: float) -> float:
        """Everything rounding can have done to the bound, and the numerical error of the score.

        ``highest`` is the largest gain, of a column or of a choice.
        """
        k, point = self.problem.most_columns, bound.point
        w_error = float(point[U_ERROR]) + 4 * ROUNDING * (
            float(np.abs(bound.c).max()) + self._largest
        )

        def stiffness() -> float:
            return float(bound.d[self._cells(bound.region) != kernels.OUT].min() + point[MU])

        gain_error = self.constraint.gain_error(k, highest, w_error, stiffness)
        size = self.yy + abs(bound.yy) + penalty + abs(carried) + k * highest
        # Gains of choices are sums: a rounding more for each column.
        summed = k if self.problem.layout.grouped else 0
        rounding = (4 * k + summed + 64) * ROUNDING * size
        return float(
            gain_error + point[CARRIED_ERROR] + rounding + 2 * self._scorer.score_step_float
        )
