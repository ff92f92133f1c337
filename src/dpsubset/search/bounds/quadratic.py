"""Certified modular lower bounds on the score over a region.

    f~(S) * unit >= base - sum over the picked features j of g_j   for every S of the region

The dual points come from :mod:`dpsubset.search.bounds.kernels`; this module turns them into bounds
that hold for the program: every rounding on the way (sums of columns, updates of u, the gains) and
the numerical error tau of the score are subtracted.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, eigvalsh
from scipy.linalg.lapack import dpotrf, dpotri
from threadpoolctl import ThreadpoolController

from ...losses import Scorer
from ...losses.kernels import BALL, BOX, L1
from ...public.problem import Problem
from ...table.door import STEPS
from ...table.gram import Gram
from ..region import Region
from ..tuning import Tuning
from . import diagonal_kernels as diagonals
from . import kernels

_CODES = {"box": BOX, "ball": BALL, "l1": L1}
_ROUNDING = 2.0**-53
_SCALE = float(STEPS) ** 2

#: Most features of a core, and how often it may grow, in `Bounder._focus`.
_LARGEST_CORE, _FOCUSES = 64, 3
#: How many neighbours of a feature, beyond k, are kept at hand for it.
_NEIGHBOURS = 8
#: Shares of the room that sweeps of coordinate ascent on the diagonal take: small ones first, or
#: the first features would take everything.
_FIRST_SWEEPS = (0.1, 0.2, 0.3, 0.5)
_NEXT_SWEEPS = (0.15, 0.4)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_EVERYWHERE = np.empty(0, dtype=np.bool_)


class Bound:
    """A region with a dual point b and the modular bound that follows from it.

    Attributes
    ----------
    base : float
        What no picked feature carries.
    flat : float
        Lower bound for the whole region.
    leaders : list of int
        The picks that attain it.
    lead : int
        The feature to branch on.
    waste : float
        How much the race has lost here.
    """

    __slots__ = (
        "b", "base", "c", "core", "d", "fixed", "flat", "lead", "leaders", "region", "state", "u",
        "waste", "yy",
    )  # fmt: skip

    def __init__(
        self, region: Region, c: Floats, yy: float, d: Floats, b: Floats, u: Floats, state: Floats
    ) -> None:
        self.region = region
        self.c, self.yy = c, yy
        self.d, self.b, self.u, self.state = d, b, u, state
        # Where b has to stay, but for members, for d to be valid; empty for everywhere.
        self.core: NDArray[np.bool_] = _EVERYWHERE
        self.fixed: Floats | None = None  # gains from known scores, where one pick is left
        self.base = self.flat = -np.inf
        self.leaders: list[int] = []
        self.lead = -1
        self.waste = 0.0

    def guess(self) -> tuple[int, ...]:
        """The support that attains the bound: a good first candidate."""
        return tuple(sorted([*(int(j) for j in self.region.members), *self.leaders]))


class Bounder:
    """Computes bounds for the regions of one problem on one data set."""

    def __init__(
        self, gram: Gram, problem: Problem, scorer: Scorer, eta: float, tuning: Tuning
    ) -> None:
        p = problem.p
        self._tuning = tuning
        # Most candidates for the last pick, and most supports of a region, that are worth scoring
        # one by one where bounds and splits would do.
        self.most_closed, self.most_listed = tuning.last_pick, tuning.listable
        self.hard_after = tuning.hard_after
        self.problem = problem
        self.code = _CODES[problem.constraint]
        self._gram = gram
        self._scale = _SCALE
        self.c = gram.c / _SCALE
        self.yy = gram.yy / _SCALE
        self._scorer = scorer
        # Smoother than the mechanism asks for where eta is large: the dual ascent needs it.
        self.eta = min(eta, 250.0 / self.yy) if self.yy > 0 else 1.0
        # |G_ij| <= max G_ii for a Gram matrix: the size of anything that is added up.
        self._largest = float(gram.diagonal.max()) / _SCALE + problem.ridge
        self._d = np.full(p, problem.ridge)
        # For the balls the part of H that is taken out as a diagonal decides hard searches: on
        # small problems every region gets its own, on larger ones there is one for all. A good
        # ridge makes a search easy; others turn out to be hard: see `strengthen`.
        self._hard = problem.ridge < 0.05 * self._largest
        self._local = self.code != BOX and p <= tuning.small and gram.whole
        self._keeps_b = gram.whole and p <= tuning.large
        self._crowds: tuple[Ints, Ints] | None = None

    def root(self, region: Region, rounds: int = 40) -> Bound:
        """A bound from scratch."""
        p = self.problem.p
        bound = Bound(region, self.c, self.yy, self._d, np.zeros(p * self._keeps_b), np.zeros(p),
                      np.zeros(6))  # fmt: skip
        if self._local and self._hard:
            self._extract(bound, _FIRST_SWEEPS)
        return self._settle(bound, rounds)

    def child(self, parent: Bound, region: Region, rounds: int = 8) -> Bound:
        """A bound that starts from the parent's dual point, which is valid here too."""
        bound = self._inherit(parent, region)
        if parent.fixed is not None:
            bound.fixed, bound.base = parent.fixed, parent.base
        elif self._local and self._hard:
            self._extract(bound, _FIRST_SWEEPS if bound.d is self._d else _NEXT_SWEEPS)
            if self._settle(bound, rounds).flat >= parent.flat:
                return bound
            # A diagonal of its own can be worse than the parent's, where the ridge is a good one.
            other = self._settle(self._inherit(parent, region), rounds)
            return other if other.flat > bound.flat else bound
        elif self._crowds is not None:
            if not len(bound.core) and bound.d is not self._d:
                self._exchange(bound, self._d)
            self._settle(bound, rounds)
            other = self._inherit(parent, region)
            if (
                bound.fixed is None
                and self._focus(other)
                and self._settle(other, rounds).flat > bound.flat
            ):
                return other
            return bound
        elif self._keeps_b and bound.d is not self._d:
            self._exchange(bound, self._d)
        return self._settle(bound, rounds)

    @staticmethod
    def _inherit(parent: Bound, region: Region) -> Bound:
        bound = Bound(region, parent.c, parent.yy, parent.d, parent.b.copy(), parent.u.copy(),
                      parent.state.copy())  # fmt: skip
        bound.core = parent.core
        return bound

    def _focus(self, bound: Bound) -> bool:
        """Take as much of H out as a diagonal d as the supports of the region allow.

        b keeps to a core: the members, and the anchor's features in a mistake bucket. This is good
        where the other picks have little weight: d is almost all of their part of H, and b need not
        know them. False if there is no such diagonal.
        """
        region, gram, k = bound.region, self._gram, self.problem.k
        core = np.zeros(self.problem.p, dtype=np.bool_)
        core[region.members] = True
        others = 0
        for pool, m in enumerate(region.picks):
            if region.sizes[pool] <= self._tuning.anchor * k:
                core[region.pool(pool)] = True
            else:
                others += m
        d = np.empty(self.problem.p)
        assert self._crowds is not None
        for _ in range(_FOCUSES):
            features = np.flatnonzero(core)
            size = float(gram.diagonal[features].sum() + gram.diagonal.max()) / self._scale
            if len(features) > _LARGEST_CORE or not diagonals.sparse_diagonal(
                gram.columns, gram.slot, self._scale, gram.diagonal, *self._crowds, others,
                region.status, features, 64 * (len(features) + 4) * _ROUNDING * size, d,
            ):  # fmt: skip
                return False
            alike = d < 0.0
            if not alike.any():
                break
            core |= alike  # from features that are too much alike nothing is taken out
        else:
            return False
        bound.b[~core] = 0.0
        bound.core = core
        # Rounded down: less than there is may always be taken out.
        self._exchange(bound, (d + self.problem.ridge) * (1.0 - 2.0**-52))
        return True

    def strengthen(self, sweeps: bool) -> None:
        """Find better diagonals for the regions to come: the search turns out to be a hard one.

        From here on every region tries a diagonal for its own supports, see `_focus`. For the balls
        there is an even diagonal from the smallest eigenvalue for all of them; with ``sweeps``, an
        entry of its own for every feature, which takes seconds at a thousand features.
        """
        self._hard = True
        if not self._keeps_b or self._local:
            return
        p = self.problem.p
        if self._crowds is None:
            self._crowds = self._find_crowds()
        if self.code == BOX or self.problem.p > self._gram.n:
            return
        block = self._gram.columns[:p, :p] / self._scale
        nudge = _nudge(block, self.problem.ridge)
        block[np.diag_indices_from(block)] += self.problem.ridge + nudge
        d = np.full(p, max(0.0, _smallest(block) - 4 * nudge))
        if sweeps:
            factor, _ = dpotrf(block - np.diag(0.9 * d), lower=1)
            inverse, failed = dpotri(factor, lower=1)
            raised = 0.9 * d
            if not failed:
                inverse = np.ascontiguousarray(np.tril(inverse) + np.tril(inverse, -1).T)
                for share in _NEXT_SWEEPS:
                    diagonals.raise_diagonal(inverse, raised, np.ones(p, dtype=np.bool_), share)
                raised = np.maximum(raised * (1 - 1e-9) - 4 * nudge, 0.0)
                if not dpotrf(block - np.diag(raised + 2 * nudge), lower=1)[1]:
                    d = raised
        self._d = d

    def _find_crowds(self) -> tuple[Ints, Ints]:
        """Which features are most alike, and how much."""
        most = min(self.problem.k + _NEIGHBOURS, max(self.problem.p - 1, 1))
        return diagonals.crowds(self._gram.columns, self._gram.slot, self.problem.p, most)

    def gains(self, bound: Bound) -> Floats:
        """g_j of every feature of the region."""
        if bound.fixed is not None:
            return bound.fixed
        g = np.empty(self.problem.p)
        kernels.gains(bound.c, bound.u, bound.region.status, self.code, self.problem.radius,
                      bound.d, bound.state[1], bound.state[5], g)  # fmt: skip
        return g

    def _extract(self, bound: Bound, sweeps: tuple[float, ...]) -> None:
        """Take as much of H out as a diagonal d as the region's own features allow.

        H - diag(d) must stay positive semidefinite on the features that are not out. Features
        forced in need no d of their own; giving theirs up leaves more for the free ones.
        """
        outside = bound.region.status == kernels.OUT
        features = np.flatnonzero(~outside)
        free = bound.region.status[features] != kernels.IN
        block = self._gram.columns[np.ix_(features, features)] / self._scale
        nudge = _nudge(block, self.problem.ridge)
        block[np.diag_indices_from(block)] += self.problem.ridge + nudge
        d = np.where(free, bound.d[features], 0.0)
        if bound.d is self._d:  # the first time: start from an even diagonal
            d = np.where(free, max(0.9 * _smallest(block), 0.0), 0.0)
        inverse = np.empty_like(block)
        if not diagonals.positive_inverse(block - np.diag(d), inverse):
            return  # what the region has is valid
        for share in sweeps:
            diagonals.raise_diagonal(inverse, d, free, share)
        d = np.maximum(d * (1 - 1e-9) - 4 * nudge, 0.0)
        if not diagonals.positive_inverse(block - np.diag(d + 2 * nudge), inverse):
            return
        whole = np.zeros(self.problem.p)
        whole[features] = d
        # b must live where H - diag(d) is known to be semidefinite.
        bound.b[outside] = 0.0
        self._exchange(bound, whole)

    def _exchange(self, bound: Bound, d: Floats) -> None:
        """Another diagonal for the same b: u and b'Qb anew."""
        p = self.problem.p
        bound.d = d
        used = np.flatnonzero(bound.b)
        weights = bound.b[used] / self._scale
        bound.u[:] = (
            weights @ self._gram.columns[self._gram.slot[used], :p]
            + (self.problem.ridge - d) * bound.b
        )
        norm = float(np.abs(bound.b).sum()) * (1 + 1e-9)
        error = 4 * (len(used) + 16) * _ROUNDING * self._largest
        bound.state[0] = bound.b @ bound.u
        bound.state[2:5] = norm, error * norm, error * norm * norm

    def _settle(self, bound: Bound, rounds: int) -> Bound:
        region, problem = bound.region, self.problem
        penalty = self._scorer.penalty * self._scorer.unit_float * region.size
        if bound.fixed is None and sum(region.picks) == 1 and self._can_close(region):
            self._score_last_pick(bound)
        if bound.fixed is not None:
            g = bound.fixed
        else:
            self._improve(bound, rounds)
            g = self.gains(bound)
            forced = float(g[region.members].sum())
            carried = bound.state[0] + kernels.extra(
                self.code, problem.radius, bound.state[1], bound.state[5]
            )
            bound.base = bound.yy + penalty - carried - forced
            bound.base -= self._margin(bound, carried, g, penalty)
        bound.leaders = self._leaders(region, g)
        gained = float(g[bound.leaders].sum())
        bound.flat = bound.base - gained - 8 * _ROUNDING * (self.yy + penalty)
        bound.lead = max(bound.leaders, key=lambda j: g[j], default=-1)
        return bound

    def _improve(self, bound: Bound, rounds: int) -> None:
        """A better dual point for the region."""
        region, problem = bound.region, self.problem
        # An improvement of 2 % of 1/eta in the exponent is worth another round.
        while True:
            missing = kernels.improve(
                self._gram.columns, self._gram.slot, self._scale, bound.c, region.status,
                region.members, np.array(region.picks), self.code, problem.radius,
                problem.ridge, bound.d, self.eta, rounds, 0.02 / self.eta, self._largest,
                bound.core, bound.b, bound.u, bound.state,
            )  # fmt: skip
            if missing < 0:
                break
            self._fetch(bound, missing)

    def _fetch(self, bound: Bound, missing: int) -> None:
        """Get the column that the dual ascent wants next, and those it is likely to want."""
        region = bound.region
        wanted = [missing, *region.members.tolist()]
        g = self.gains(bound)
        for pool, m in enumerate(region.picks):
            if m:
                free = region.pool(pool)
                wanted += free[np.argsort(-g[free], kind="stable")[: 3 * m + 16]].tolist()
        self._gram.fetch(wanted)

    def _can_close(self, region: Region) -> bool:
        return sum(region.sizes) <= self.most_closed

    def _score_last_pick(self, bound: Bound) -> None:
        """With one pick left every function of it is modular: take the scores themselves."""
        region = bound.region
        free = np.flatnonzero(region.status >= kernels.FREE)
        # A pool with nothing to pick is as good as out.
        free = free[[region.picks[int(region.status[j]) - kernels.FREE] > 0 for j in free]]
        supports = np.empty((len(free), region.size), dtype=np.int64)
        supports[:, :-1] = region.members
        supports[:, -1] = free
        supports.sort(axis=1)
        scores = self._scorer.scores(supports) * self._scorer.unit_float
        worst = float(scores.max())
        bound.fixed = np.zeros(self.problem.p)
        bound.fixed[free] = worst - scores
        # No allowance for tau, but one for the rounding on the way from scores to masses.
        bound.base = worst - (4 * self.problem.k + 64) * _ROUNDING * (self.yy + worst)

    def _leaders(self, region: Region, g: NDArray[np.float64]) -> list[int]:
        leaders: list[int] = []
        for pool, m in enumerate(region.picks):
            if m:
                top = np.empty(m, dtype=np.int64)
                kernels.largest(g, region.status, pool, m, top)
                leaders += top.tolist()
        return leaders

    def _margin(self, bound: Bound, carried: float, g: Floats, penalty: float) -> float:
        """Everything rounding can have done to the bound, and the numerical error of the score.

        ``state[3]`` bounds the error of u, ``state[4]`` that of b'Qb (see `kernels.improve`).
        """
        k, radius = self.problem.k, self.problem.radius
        w_error = bound.state[3] + 4 * _ROUNDING * (float(np.abs(bound.c).max()) + self._largest)
        highest = float(g.max())
        if self.code != BOX:
            d = bound.d[bound.region.status != kernels.OUT] + bound.state[1]
            steepest = float(np.sqrt(highest / d.min())) * (1 + 2.0**-40)
            gain_error = k * (2 * steepest * w_error + w_error**2 / float(d.min()))
        else:
            gain_error = 2 * k * radius * w_error
        size = self.yy + abs(bound.yy) + penalty + abs(carried) + k * highest
        rounding = (4 * k + 64) * _ROUNDING * size
        return float(gain_error + bound.state[4] + rounding + 2 * self._scorer.unit_float)


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _smallest(block: Floats) -> float:
    """The smallest eigenvalue; 0, of which nothing can be taken out, if LAPACK finds none."""
    try:
        # Its threads wait for each other longer than they work, on a busy machine.
        with _blas().limit(limits=1, user_api="blas"):
            return float(eigvalsh(block, subset_by_index=(0, 0), check_finite=False)[0])
    except LinAlgError:  # not an error that a user may see: it would depend on the data
        return 0.0


def _nudge(gram: Floats, ridge: float) -> float:
    """What rounding can hide from a factorisation of H or an eigenvalue, several times over."""
    size = float(np.trace(gram)) + ridge * len(gram)
    return 64 * (len(gram) + 4) * _ROUNDING * max(size, 1e-300)
