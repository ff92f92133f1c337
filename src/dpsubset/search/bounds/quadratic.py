"""Bounds for least squares: dual points from X'X and X'y, and diagonals that sharpen them.

The more of H is taken out as a diagonal d, the better the bounds; what is left must be positive
semidefinite wherever it counts. There is one diagonal for all regions, or one for each.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from ...base.kernels.arrays import ROUNDING, Array, Ints
from ...data.gram import GramData
from ...data.quantize import STEPS
from ...objective.losses import Scorer
from ...objective.problem import Problem
from ..region import Region
from ..tuning import Tuning
from . import ascent, kernels
from . import diagonal_kernels as diagonals
from .base import Bounded, Bounder
from .blas import one_thread, smallest_eigenvalue
from .blocked import Blocked
from .blocks import Blocks
from .kernels import CARRIED, CARRIED_ERROR, DRIFT, MU, NU, U_ERROR
from .solved import Solved
from .solved_kernels import MOST

_SCALE = float(STEPS) ** 2

#: Most features of a core, and how often it may grow, in `Bounder._focus`.
_LARGEST_CORE, _FOCUSES = 64, 3
#: Regions in a row that such diagonals must not have served, until nobody asks for them again.
_VAIN = 64
#: How many neighbours of a feature, beyond k, are kept at hand for it.
_NEIGHBOURS = 8
#: Shares of the room that sweeps of coordinate ascent on the diagonal take: small ones first, or
#: the first features would take everything.
_FIRST_SWEEPS = (0.1, 0.2, 0.3, 0.5)
_NEXT_SWEEPS = (0.15, 0.4)


#: What a column of no block may gain by that, in the exponent; for the ball, in parts of its own.
_COLD = 0.5

#: How often the softening of gains is halved, at most, before a region is split.
_SOFTENINGS = 24


class QuadraticBounder(Bounder):
    """Bounds from a quadratic objective b'Hb - 2c'b + yy with H = X'X / scale + ridge."""

    def __init__(
        self, digest: GramData, problem: Problem, scorer: Scorer, tuning: Tuning, *, c: Array,
        yy: float, scale: float, eta: float,
    ) -> None:  # fmt: skip
        # |G_ij| <= max G_ii for a Gram matrix.
        largest = float(digest.diagonal.max()) / scale + problem.ridge
        super().__init__(problem, scorer, tuning, c=c, yy=yy, largest=largest, eta=eta)
        self._digest, self._scale = digest, scale
        #: Whether there are few enough columns, all at hand, to look for better diagonals at all.
        self._diagonals = digest.whole and problem.columns <= tuning.whole
        #: How many regions in a row had no use for a diagonal of their own supports.
        self._unfocused = 0
        self._cap = np.inf if self.constraint.is_joint() else self.constraint.radius
        #: Most columns in which a dual point moves at a time.
        self._most = tuning.movers
        if not digest.whole:
            self._most = min(self._most, 3 * problem.most_columns + 16)
        #: Whether diagonals are worth their time; whether every region gets its own.
        self._hard = self._local = False
        self._crowds: tuple[Ints, Ints] | None = None

    def root(self, region: Region, rounds: int = 40) -> Bounded:
        """A bound from scratch."""
        bound = Bounded.fresh(region, self.c, self.yy, self._d, self.problem.columns)
        if self._local and self._hard:
            self._extract(bound, _FIRST_SWEEPS)
        return self._settle(bound, rounds)

    def child(self, parent: Bounded, region: Region, rounds: int = 8) -> Bounded:
        """A bound that starts from the parent's dual point, which is valid here too."""
        bound = parent.inherited(region)
        if bound.fixed is not None:
            return self._settle(bound, rounds)
        if self._local and self._hard:
            self._extract(bound, _FIRST_SWEEPS if bound.d is self._d else _NEXT_SWEEPS)
            if self._settle(bound, rounds).flat >= parent.flat:
                return bound
            # A diagonal of its own can be worse than the parent's, where the ridge is a good one.
            other = self._settle(parent.inherited(region), rounds)
            return other if other.flat > bound.flat else bound
        if self._crowds is not None:
            if not len(bound.core) and bound.d is not self._d:
                self._exchange(bound, self._d)
            self._settle(bound, rounds)
            if bound.fixed is not None or self._unfocused >= _VAIN:
                return bound
            other = parent.inherited(region)
            if self._focus(other) and self._settle(other, rounds).flat > bound.flat:
                self._unfocused = 0
                return other
            self._unfocused += 1
            return bound
        if self._diagonals and bound.d is not self._d:
            self._exchange(bound, self._d)
        return self._settle(bound, rounds)

    def _focus(self, bound: Bounded) -> bool:
        """Take as much of H out as a diagonal d as the supports of the region allow.

        b keeps to a core: the members, and the anchor's features in a mistake bucket. This is good
        where the other picks have little weight: d is almost all of their part of H, and b need not
        know them. False if there is no such diagonal.
        """
        region, digest, layout = bound.region, self._digest, self.problem.layout
        cells = self._cells(region)
        core = cells == kernels.IN
        others = 0
        for pool, m in enumerate(region.picks):
            if region.sizes[pool] <= self.tuning.anchor * self.problem.k:
                core |= cells == kernels.FREE + pool
            else:
                others += layout.widest * m
        d = np.empty(self.problem.columns)
        assert self._crowds is not None
        for _ in range(_FOCUSES):
            features = np.flatnonzero(core)
            size = float(digest.diagonal[features].sum() + digest.diagonal.max()) / self._scale
            if len(features) > _LARGEST_CORE or not diagonals.sparse_diagonal(
                digest.products, self._scale, *self._crowds, others,
                cells, features, 64 * (len(features) + 4) * ROUNDING * size, d,
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
        """Find better diagonals for the regions to come.

        From here on every region tries a diagonal for its own supports, see `_focus`. For the balls
        there is an even diagonal from the smallest eigenvalue for all of them; with ``sweeps``, an
        entry of its own for every feature, which takes seconds at a thousand features.
        """
        self._hard = True
        if not self._diagonals or self._local:
            return
        p = self.problem.columns
        if self._crowds is None:
            self._crowds = self._find_crowds()
        if not self.constraint.is_joint() or p > min(self._digest.n, self.tuning.large):
            return
        block = self._digest.product_rows() / self._scale
        nudge = _nudge(block, self.problem.ridge)
        block[np.diag_indices_from(block)] += self.problem.ridge + nudge
        d = np.full(p, max(0.0, smallest_eigenvalue(block) - 4 * nudge))
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
        p = self.problem.columns
        most = min(self.problem.most_columns + _NEIGHBOURS, max(p - 1, 1))
        found: tuple[Ints, Ints] = diagonals.crowds(self._digest.products, p, most)
        return found

    def _extract(self, bound: Bounded, sweeps: tuple[float, ...]) -> None:
        """Take as much of H out as a diagonal d as the region's own features allow.

        H - diag(d) must stay positive semidefinite on the features that are not out. Features
        forced in need no d of their own; giving theirs up leaves more for the free ones.
        """
        cells = self._cells(bound.region)
        outside = cells == kernels.OUT
        features = np.flatnonzero(~outside)
        free = cells[features] != kernels.IN
        block = self._digest.block(features) / self._scale
        nudge = _nudge(block, self.problem.ridge)
        block[np.diag_indices_from(block)] += self.problem.ridge + nudge
        d = np.where(free, bound.d[features], 0.0)
        if bound.d is self._d:  # the first time: start from an even diagonal
            d = np.where(free, max(0.9 * smallest_eigenvalue(block), 0.0), 0.0)
        inverse = np.empty_like(block)
        if not diagonals.positive_inverse(block - np.diag(d), inverse):
            return  # what the region has is valid
        for share in sweeps:
            diagonals.raise_diagonal(inverse, d, free, share)
        d = np.maximum(d * (1 - 1e-9) - 4 * nudge, 0.0)
        if not diagonals.positive_inverse(block - np.diag(d + 2 * nudge), inverse):
            return
        whole = np.zeros(self.problem.columns)
        whole[features] = d
        # b must live where H - diag(d) is known to be semidefinite.
        bound.b[outside] = 0.0
        self._exchange(bound, whole)

    def _exchange(self, bound: Bounded, d: Array) -> None:
        """Another diagonal for the same b: u and b'Qb anew."""
        bound.d = d
        used = np.flatnonzero(bound.b)
        self._digest.fetch(used.tolist())  # columns on demand may have been dropped since
        weights = bound.b[used] / self._scale
        bound.u[:] = weights @ self._digest.product_rows(used) + (self.problem.ridge - d) * bound.b
        norm = float(np.abs(bound.b).sum()) * (1 + 1e-9)
        error = 4 * (len(used) + 16) * ROUNDING * self._largest
        point = bound.point
        point[CARRIED], point[DRIFT] = bound.b @ bound.u, 0.0
        point[U_ERROR], point[CARRIED_ERROR] = error * norm, error * norm * norm

    def _improve(self, bound: Bounded, rounds: int) -> None:
        """A better dual point for the region."""
        first = bound.point[MU] == 0.0
        if first and self.constraint.is_softened():
            bound.point[MU] = max(float(np.abs(bound.c).max()) / self.constraint.radius, 1e-9)
        phi = self._ascend(bound, rounds)
        if not self.constraint.is_softened():
            return
        # From a smooth problem to a steep one, as long as that helps.
        for _ in range(_SOFTENINGS if first else 1):
            kept = bound.b.copy(), bound.u.copy(), bound.point.copy()
            bound.point[MU] *= 0.5
            now = self._ascend(bound, rounds)
            if not now < phi:
                bound.b[:], bound.u[:], bound.point[:] = kept
                break
            phi = now

    def _ascend(self, bound: Bounded, rounds: int) -> float:
        """The same for the softening that there is; returned is Phi."""
        worth = 0.02 / self.eta  # an improvement of 2 % in the exponent is worth another round
        if bound.point[CARRIED_ERROR] > 0.01 * worth:
            self._exchange(bound, bound.d)  # errors of many steps have added up
        picks, wanted = self._picks(bound.region), np.empty(self.problem.columns, dtype=np.int64)
        # Each time the columns for a round are fetched. Any point will do if that is not the end.
        for _ in range(rounds + 1):
            missing, phi = ascent.improve(
                self._digest.columns, self._digest.slot, self._scale, bound.c, *picks,
                self.constraint, self._cap, self.problem.ridge, bound.d, self.eta, rounds,
                worth, self._largest, bound.core, self._most, bound.b, bound.u,
                bound.point, wanted,
            )  # fmt: skip
            if not missing:
                break
            self._fetch(bound, wanted[:missing])
        return float(phi)

    def _fetch(self, bound: Bounded, wanted: Ints) -> None:
        """Get the columns that the dual ascent wants next, and those it is likely to want."""
        region, layout = bound.region, self.problem.layout
        together = [*wanted.tolist(), *self._members(region).tolist()]
        g = self.gains(bound)
        for pool, m in enumerate(region.picks):
            if m:
                free = region.pool(pool)
                leading = free[np.argsort(-g[free], kind="stable")[: 4 * m + 32]]
                together += layout.of_support(leading).tolist()
        self._digest.fetch(together)

    def widen(self) -> None:
        """Columns on demand are no longer spared: the search is not an easy one."""
        self._most = self.tuning.movers
        if not self._digest.whole and self.problem.columns <= self.tuning.whole:
            self._digest.fetch(range(self.problem.columns))
            self._diagonals = bool((self._digest.slot >= 0).all())


class LeastSquaresBounder(QuadraticBounder):
    """Bounds for least squares, from moments."""

    def __init__(
        self, digest: GramData, problem: Problem, scorer: Scorer, eta: float, tuning: Tuning
    ) -> None:
        yy = digest.yy / _SCALE
        # Smoother than the mechanism asks for where eta is large: the dual ascent needs it, above
        # all where one bound holds for all coefficients. A pick gains about y'y / k.
        steepest = 5000.0
        if problem.coefficients.is_joint():
            steepest = min(120.0 * problem.k, steepest)
        smooth = min(eta, steepest / yy) if yy > 0 else 1.0
        super().__init__(digest, problem, scorer, tuning, c=digest.c / _SCALE, yy=yy, scale=_SCALE,
                         eta=smooth)  # fmt: skip
        # For the balls the part of H that is taken out as a diagonal decides hard searches: on
        # small problems every region gets its own, on larger ones there is one for all. A good
        # ridge makes a search easy; others turn out to be hard: see `strengthen`.
        self._hard = problem.ridge < 0.05 * self._largest
        small = problem.columns <= tuning.small and digest.whole
        self._local = self.constraint.is_joint() and small

    def block(self, bound: Bounded, parent: Bounded | None = None) -> None:
        """Give a bound its ``blocks``, if there are any: its parent's, if it has one."""
        if bound.fixed is not None or bound.region.picks[1]:
            return
        # What overflows is of no use, and a warning would tell of the data.
        with np.errstate(all="ignore"), one_thread():
            blocks, starts = None, [bound.b]
            if parent is None:
                blocks = self._find_blocks(bound)
            elif parent.blocks is not None:
                blocks = parent.blocks.blocks
                starts.append(parent.blocks.b)
            if blocks is None or not self._has_use(blocks, bound):
                return
            mu, nu = float(bound.point[MU]), float(bound.point[NU])
            tried = []
            for start in starts:
                made = Blocked(blocks, self._cells(bound.region), self.constraint, self.c, start,
                               mu, nu)  # fmt: skip
                made.ascend(self.eta, bound.region.picks[0])
                tried.append(made)
            made = min(tried, key=lambda made: made.phi)
            made.certify(self.yy, self.penalty(bound.region), 2 * self._largest,
                         self.problem.most_columns, self._scorer.score_step_float)  # fmt: skip
        bound.blocks = made

    def solve(self, bound: Bounded) -> Solved | None:
        """Where a region has few supports, what can be said of each; None if that is nothing.

        Of the ball: it is the one constraint that a multiplier does away with.
        """
        region, digest = bound.region, self._digest
        if not self.constraint.is_joint() or self.constraint.is_softened():
            return None
        if bound.fixed is not None or self.problem.layout.grouped:
            return None
        if region.picks[1] or not region.picks[0]:
            return None
        if region.count() > min(self.tuning.solvable, MOST) or (digest.slot < 0).any():
            return None
        guess = self.problem.layout.of_support(np.array(bound.guess()))
        # What overflows is of no use, and a warning would tell of the data.
        with np.errstate(all="ignore"):
            return Solved(digest.products, self._scale, self.problem.ridge, self.c,
                          self._members(region), region.pool(0), region.picks[0],
                          self.constraint.radius, self._largest, guess)  # fmt: skip

    def _has_use(self, blocks: Blocks, bound: Bounded) -> bool:
        """Whether a region has columns in blocks, and a multiplier that makes up for cold ones."""
        if self.constraint.is_joint() and not blocks.softest() + float(bound.point[MU]) > 0.0:
            return False
        return bool(
            (self._cells(bound.region)[np.concatenate(blocks.columns)] != kernels.OUT).any()
        )

    def _find_blocks(self, bound: Bounded) -> Blocks | None:
        """Columns that are alike among those that are likely to be picked."""
        problem, digest = self.problem, self._digest
        if problem.columns > self.tuning.whole or problem.layout.grouped:
            return None
        if self.constraint.is_softened() or (digest.slot < 0).any():
            return None
        apart, chances = self._members(bound.region), np.zeros(problem.columns)
        chances[: problem.p] = kernels.chances(*self._picks(bound.region), self.gains(bound),
                                               self.eta)  # fmt: skip
        chances[apart] = 1.0
        # As little as this hardly shows where a column of no block is picked.
        if self.constraint.is_joint():
            cold = _COLD * float(bound.point[MU])
        else:
            cold = _COLD / max(self.eta * self._cap**2, 1e-300)
        gram = digest.product_rows() / self._scale
        return Blocks.find(gram, problem.ridge, chances, apart, cold, self.tuning.blocks_least)


def _nudge(digest: Array, ridge: float) -> float:
    """What rounding can hide from a factorisation of H or an eigenvalue, several times over."""
    size = float(np.trace(digest)) + ridge * len(digest)
    return 64 * (len(digest) + 4) * ROUNDING * max(size, 1e-300)
