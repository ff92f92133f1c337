"""Bound oracles: certified modular lower bounds on the scores of a region.

    f~(S) * score_step >= base - sum over the free choices j of S of g_j   for every support S

A dual point has one entry for each column of the model, and each column has a gain. The gain of a
choice is the sum of the gains of its columns. Gains of columns that every support contains (those
forced in, and the intercept's) are part of the base.

Kernels find the dual points in float64. This module turns them into bounds that hold exactly: it
subtracts every rounding error (of sums of columns, updates of u and gains) and the numerical error
tau of the score.
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
from .block_bound import BlockBound
from .kernels import MU, NU, OFFSET, OFFSET_ERROR, U_ERROR
from .support_bounds import SupportBounds

_NO_CORE = np.empty(0, dtype=np.bool_)
_ONE_COLUMN_EACH: Ints = np.empty(0, dtype=np.int64)


class Node:
    """A node of the search tree: a region, a dual point b, and the bound that b implies.

    Attributes
    ----------
    region : Region
    c, yy : array, float
        X'y and y'y, or what replaces them for the loss.
    b, u, d, point : arrays
        The dual point, u = Qb, the diagonal of H - Q, and the scalars listed in `kernels`.
    core : bool array
        Columns outside the core and the forced ones have b_j = 0, and d is valid only then. Empty
        if there is no such restriction.
    base : float
        The part of the bound that does not depend on the picks.
    lower_bound : float
        Lower bound on every score of the region.
    relaxed_support : list of int
        The picks that minimise the modular bound.
    branch_on : int
        The choice to branch on: the pick with the largest gain.
    exact_gains : array or None
        Gains computed from scores, where one pick is left.
    block_bound : BlockBound or None
        A second bound, used by races, where columns are highly correlated.
    support_bounds : SupportBounds or None
        One bound for each support, used by races in regions with few supports.
    rejection_cost : float
        What rejected proposals in this region have cost a race so far.
    """

    __slots__ = (
        "b", "base", "block_bound", "branch_on", "c", "core", "d", "exact_gains", "lower_bound",
        "point", "region", "rejection_cost", "relaxed_support", "support_bounds", "u", "yy",
    )  # fmt: skip

    def __init__(
        self, region: Region, c: Array, yy: float, d: Array, b: Array, u: Array, point: Array
    ) -> None:
        self.region = region
        self.c, self.yy = c, yy
        self.d, self.b, self.u, self.point = d, b, u, point
        self.core: NDArray[np.bool_] = _NO_CORE
        self.exact_gains: Array | None = None
        self.block_bound: BlockBound | None = None
        self.support_bounds: SupportBounds | None = None
        self.base = self.lower_bound = -np.inf
        self.relaxed_support: list[int] = []
        self.branch_on = -1
        self.rejection_cost = 0.0

    @classmethod
    def at_zero(cls, region: Region, c: Array, yy: float, d: Array, size: int) -> Node:
        """A node whose dual point is 0, with ``size`` numbers."""
        point = np.zeros(kernels.PLACES)
        return cls(region, c, yy, d, np.zeros(size), np.zeros(len(c)), point)

    def inherited(self, region: Region) -> Node:
        """A node for a subset of the region, with a copy of this dual point, which is valid there.

        Exact gains are inherited as well. A last pick that the subset forces in moves its gain to
        the base.
        """
        node = Node(region, self.c, self.yy, self.d, self.b.copy(), self.u.copy(),
                    self.point.copy())  # fmt: skip
        node.core = self.core
        if self.exact_gains is not None:
            forced = np.setdiff1d(region.members, self.region.members)
            node.exact_gains = self.exact_gains
            node.base = self.base - float(self.exact_gains[forced].sum())
        return node

    def incumbent(self) -> tuple[int, ...]:
        """The support that minimises the bound: a good first candidate for the best support."""
        return tuple(sorted([*(int(j) for j in self.region.members), *self.relaxed_support]))


class BoundOracle(ABC):
    """Computes bounds for the regions of one problem on one data set.

    ``c`` and ``yy`` are X'y and y'y, or what replaces them for the loss. No entry of H or c exceeds
    ``largest`` in absolute value. Envelopes of the bounds should be small at the weight ``eta`` of
    the scores.
    """

    def __init__(
        self, problem: Problem, scorer: Scorer, tuning: Tuning, *, c: Array, yy: float,
        largest: float, eta: float,
    ) -> None:  # fmt: skip
        self.problem, self.tuning = problem, tuning
        self.constraint = problem.coefficients
        self.c, self.yy, self.eta = c, yy, eta
        #: Up to so many candidates for the last pick, and up to so many supports of a region, are
        #: scored instead of bounded.
        self.max_last_picks, self.max_listed = tuning.last_pick, tuning.listable
        self.hard_after = tuning.hard_after
        many = problem.columns > tuning.whole
        self.wide_after = tuning.wide_after_many if many else tuning.wide_after
        self._scorer = scorer
        self._largest = largest
        #: The diagonal subtracted from H in all regions. The ridge is always valid.
        self.shared_diagonal = np.full(problem.columns, problem.ridge)
        self._starts = problem.layout.starts if problem.layout.grouped else _ONE_COLUMN_EACH

    @abstractmethod
    def root(self, region: Region, rounds: int = 40) -> Node:
        """A node whose bound is computed from scratch."""

    def child(self, parent: Node, region: Region, rounds: int = 8) -> Node:
        """A node whose bound starts from the parent's dual point, which is valid here too."""
        return self.evaluate(parent.inherited(region), rounds)

    def widen(self) -> None:  # noqa: B027
        """Use more columns in the regions to come: the search is not an easy one."""

    def add_block_bound(self, node: Node, parent: Node | None = None) -> None:  # noqa: B027
        """Set ``block_bound`` if there is one, starting from the parent's if that is given."""

    def bound_each_support(self, node: Node) -> SupportBounds | None:
        """One bound for each support of a region with few supports; None if not available."""
        return None

    @abstractmethod
    def strengthen(self, sweeps: bool) -> None:
        """Spend more time on the bounds of the regions to come: the search is a hard one.

        With ``sweeps`` it is a very hard one.
        """

    @abstractmethod
    def _ascend_dual(self, node: Node, rounds: int) -> None:
        """Improve the dual point of a node in place."""

    def penalty(self, region: Region) -> float:
        """What the score adds for the size of a region's supports."""
        return float(self._scorer.penalty * self._scorer.score_step_float * region.size)

    def gains(self, node: Node) -> Array:
        """g_j of every choice of the region."""
        if node.exact_gains is not None:
            return node.exact_gains
        return self.problem.layout.of_choices(self._column_gains(node))

    def _column_gains(self, node: Node) -> Array:
        g = np.empty(self.problem.columns)
        kernels.gains(node.c, node.u, self.column_status(node.region), self.constraint, node.d,
                      node.point[MU], node.point[NU], g)  # fmt: skip
        return g

    def column_status(self, region: Region) -> NDArray[np.int8]:
        """For every column of the model: forced out, forced in, or free."""
        return self.problem.layout.of_status(region.status, kernels.IN)

    def forced_columns(self, region: Region) -> Ints:
        """The columns that all supports of a region contain."""
        return self.problem.layout.of_support(region.members)

    def _kernel_region(self, region: Region) -> kernels.KernelRegion:
        return kernels.KernelRegion(region.status, self.column_status(region),
                                    self.forced_columns(region), np.array(region.picks),
                                    self._starts)  # fmt: skip

    def evaluate(self, node: Node, rounds: int) -> Node:
        """Improve the dual point of a node and compute the bound; returns the node."""
        region = node.region
        penalty = self.penalty(region)
        if (
            node.exact_gains is None
            and sum(region.picks) == 1
            and self._can_score_last_pick(region)
        ):
            self._score_last_pick(node)
        if node.exact_gains is not None:
            g = node.exact_gains
        else:
            self._ascend_dual(node, rounds)
            each = self._column_gains(node)
            g = self.problem.layout.of_choices(each)
            forced = float(each[self.forced_columns(region)].sum())
            point = node.point
            offset = float(point[OFFSET])
            if self.constraint.is_joint():  # otherwise `extra` is 0
                offset += extra(self.constraint, point[MU], point[NU])
            node.base = node.yy + penalty - offset - forced
            highest = max(float(each.max()), float(g.max()))
            node.base -= self._rounding_margin(node, offset, highest, penalty)
        node.relaxed_support = self._solve_relaxation(region, g)
        gained = float(g[node.relaxed_support].sum())
        node.lower_bound = node.base - gained - 8 * ROUNDING * (self.yy + penalty)
        node.branch_on = max(node.relaxed_support, key=lambda j: g[j], default=-1)
        return node

    def _can_score_last_pick(self, region: Region) -> bool:
        return sum(region.sizes) <= self.max_last_picks

    def _score_last_pick(self, node: Node) -> None:
        """With one pick left every function of it is modular, so the scores themselves are used."""
        region = node.region
        free = np.flatnonzero(region.status >= kernels.FREE)
        # Features of a pool from which nothing is picked are out.
        free = free[[region.picks[int(region.status[j]) - kernels.FREE] > 0 for j in free]]
        supports = np.empty((len(free), region.size), dtype=np.int64)
        supports[:, :-1] = region.members
        supports[:, -1] = free
        supports.sort(axis=1)
        scores = self._scorer.scores(supports) * self._scorer.score_step_float
        worst = float(scores.max())
        node.exact_gains = np.zeros(self.problem.p)
        node.exact_gains[free] = worst - scores
        # Scores are exact, so tau is not subtracted; the rounding from scores to masses is.
        node.base = worst - (4 * self.problem.most_columns + 64) * ROUNDING * (self.yy + worst)

    def _solve_relaxation(self, region: Region, g: Array) -> list[int]:
        """The picks that minimise the modular bound: the largest gains of each pool."""
        picked: list[int] = []
        for pool, m in enumerate(region.picks):
            if m:
                top = np.empty(m, dtype=np.int64)
                kernels.top_choices(g, region.status, pool, m, top)
                picked += top.tolist()
        return picked

    def _rounding_margin(self, node: Node, offset: float, highest: float, penalty: float) -> float:
        """A bound on all rounding errors of the bound, plus the numerical error of the score.

        ``highest`` is the largest gain of a column or of a choice.
        """
        k, point = self.problem.most_columns, node.point
        w_error = float(point[U_ERROR]) + 4 * ROUNDING * (
            float(np.abs(node.c).max()) + self._largest
        )

        def stiffness() -> float:
            return float(node.d[self.column_status(node.region) != kernels.OUT].min() + point[MU])

        gain_error = self.constraint.gain_error(k, highest, w_error, stiffness)
        size = self.yy + abs(node.yy) + penalty + abs(offset) + k * highest
        # Gains of choices are sums: one more rounding for each column.
        summed = k if self.problem.layout.grouped else 0
        rounding = (4 * k + summed + 64) * ROUNDING * size
        score_error = 2 * self._scorer.score_step_float
        return float(gain_error + point[OFFSET_ERROR] + rounding + score_error)
