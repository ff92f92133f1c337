"""Bounds from a quadratic objective: dual points from X'X and X'y, and diagonals of H.

The larger the diagonal d that is subtracted from H, the better the bounds; see `diagonals` for how
it is chosen.
"""

from __future__ import annotations

import numpy as np

from ...base.kernels.arrays import ROUNDING, Array, Ints
from ...data.gram import GramData
from ...data.quantize import STEPS
from ...objective.losses import Scorer
from ...objective.problem import Problem
from ..region import Region
from ..tuning import Tuning
from . import ascent, kernels
from .base import BoundOracle, Node
from .block_bound import BlockBound
from .blocks import Blocks
from .diagonals import (
    CoreDiagonal,
    DiagonalRule,
    RegionDiagonal,
    SharedDiagonal,
    raise_shared_diagonal,
)
from .kernels import DRIFT, MU, NU, OFFSET, OFFSET_ERROR, U_ERROR
from .linear_algebra import factorisation_error, single_threaded_blas, smallest_eigenvalue
from .support_bounds import SupportBounds
from .support_kernels import MOST

_SCALE = float(STEPS) ** 2

#: What a column outside all blocks may gain by its negative diagonal, in the exponent; for the
#: ball, as a fraction of its own gain.
_REST_SHIFT = 0.5

#: How often mu is halved, at most, in the first ascent of a softened problem.
_MAX_HALVINGS = 24


class QuadraticOracle(BoundOracle):
    """Bounds from a quadratic objective b'Hb - 2c'b + yy with H = X'X / scale + ridge."""

    def __init__(
        self, gram: GramData, problem: Problem, scorer: Scorer, tuning: Tuning, *, c: Array,
        yy: float, scale: float, eta: float,
    ) -> None:  # fmt: skip
        # |G_ij| <= max G_ii for a Gram matrix.
        largest = float(gram.diagonal.max()) / scale + problem.ridge
        super().__init__(problem, scorer, tuning, c=c, yy=yy, largest=largest, eta=eta)
        self.gram, self.scale = gram, scale
        self._cap = np.inf if self.constraint.is_joint() else self.constraint.radius
        #: Most columns in which a dual point moves at a time.
        self._max_working_set = tuning.working_set
        if not gram.whole:
            self._max_working_set = min(self._max_working_set, 3 * problem.most_columns + 16)
        #: Whether all columns are in memory and few enough for better diagonals.
        self._can_raise_diagonal = gram.whole and problem.columns <= tuning.whole
        #: Whether a hard search computes a diagonal for each region.
        self._diagonal_per_region = False
        self.diagonal_rule: DiagonalRule = SharedDiagonal(self)

    def root(self, region: Region, rounds: int = 40) -> Node:
        node = Node.at_zero(region, self.c, self.yy, self.shared_diagonal, self.problem.columns)
        self.diagonal_rule.start_root(node)
        return self.evaluate(node, rounds)

    def child(self, parent: Node, region: Region, rounds: int = 8) -> Node:
        node = parent.inherited(region)
        if node.exact_gains is not None:
            return self.evaluate(node, rounds)
        return self.diagonal_rule.evaluate_child(node, parent, rounds)

    def strengthen(self, sweeps: bool) -> None:
        """Find better diagonals for the regions to come.

        With few columns and a joint constraint every region gets its own diagonal. Otherwise every
        region tries a core, and for a joint constraint the shared diagonal is raised to the
        smallest eigenvalue of H; with ``sweeps`` also entry by entry, which takes seconds at a
        thousand columns.
        """
        if self._diagonal_per_region:
            self.diagonal_rule = RegionDiagonal(self)
        elif self._can_raise_diagonal:
            if not isinstance(self.diagonal_rule, CoreDiagonal):
                self.diagonal_rule = CoreDiagonal(self)
            few = self.problem.columns <= min(self.gram.n, self.tuning.large)
            if self.constraint.is_joint() and few:
                h, error = self.quadratic_form(self.gram.product_rows())
                d = max(0.0, smallest_eigenvalue(h) - 4 * error)
                even = np.full(self.problem.columns, d)
                self.shared_diagonal = raise_shared_diagonal(h, even, error) if sweeps else even

    def quadratic_form(self, products: Ints) -> tuple[Array, float]:
        """H for a block of X'X, and the error of a factorisation, which is on its diagonal."""
        h = products / self.scale
        ridge = self.problem.ridge
        error = factorisation_error(len(h), float(np.trace(h)) + ridge * len(h))
        h[np.diag_indices_from(h)] += ridge + error
        return h, error

    def use_shared_diagonal(self, node: Node) -> None:
        if node.d is not self.shared_diagonal:
            self.replace_diagonal(node, self.shared_diagonal)

    def replace_diagonal(self, node: Node, d: Array) -> None:
        """Set the diagonal and recompute u = Qb and b'Qb for the same b."""
        node.d = d
        used = np.flatnonzero(node.b)
        self.gram.fetch(used.tolist())  # columns on demand may have been dropped since
        weights = node.b[used] / self.scale
        node.u[:] = weights @ self.gram.product_rows(used) + (self.problem.ridge - d) * node.b
        norm = float(np.abs(node.b).sum()) * (1 + 1e-9)
        error = 4 * (len(used) + 16) * ROUNDING * self._largest
        point = node.point
        point[OFFSET], point[DRIFT] = node.b @ node.u, 0.0
        point[U_ERROR], point[OFFSET_ERROR] = error * norm, error * norm * norm

    def _ascend_dual(self, node: Node, rounds: int) -> None:
        first = node.point[MU] == 0.0
        if first and self.constraint.is_softened():
            node.point[MU] = max(float(np.abs(node.c).max()) / self.constraint.radius, 1e-9)
        phi = self._ascend_once(node, rounds)
        if not self.constraint.is_softened():
            return
        # Continuation: halve mu as long as that improves the bound.
        for _ in range(_MAX_HALVINGS if first else 1):
            kept = node.b.copy(), node.u.copy(), node.point.copy()
            node.point[MU] *= 0.5
            now = self._ascend_once(node, rounds)
            if not now < phi:
                node.b[:], node.u[:], node.point[:] = kept
                break
            phi = now

    def _ascend_once(self, node: Node, rounds: int) -> float:
        """Dual ascent with the softening as it is; returns Phi."""
        worth = 0.02 / self.eta  # an improvement of 2 % in the exponent is worth another round
        if node.point[OFFSET_ERROR] > 0.01 * worth:
            self.replace_diagonal(node, node.d)  # resets the accumulated rounding errors
        region = self._kernel_region(node.region)
        wanted = np.empty(self.problem.columns, dtype=np.int64)
        # The ascent stops where it lacks columns; they are fetched and it continues. Any point is
        # valid, so the number of such rounds is limited.
        for _ in range(rounds + 1):
            missing, phi = ascent.dual_ascent(
                self.gram.columns, self.gram.slot, self.scale, node.c, *region,
                self.constraint, self._cap, self.problem.ridge, node.d, self.eta, rounds,
                worth, self._largest, node.core, self._max_working_set, node.b, node.u,
                node.point, wanted,
            )  # fmt: skip
            if not missing:
                break
            self._fetch(node, wanted[:missing])
        return float(phi)

    def _fetch(self, node: Node, wanted: Ints) -> None:
        """Fetch the columns that the dual ascent needs next, and those it is likely to need."""
        region, layout = node.region, self.problem.layout
        together = [*wanted.tolist(), *self.forced_columns(region).tolist()]
        g = self.gains(node)
        for pool, m in enumerate(region.picks):
            if m:
                free = region.pool(pool)
                leading = free[np.argsort(-g[free], kind="stable")[: 4 * m + 32]]
                together += layout.of_support(leading).tolist()
        self.gram.fetch(together)

    def widen(self) -> None:
        """Compute all columns of X'X, if they fit: the search is not an easy one."""
        self._max_working_set = self.tuning.working_set
        if not self.gram.whole and self.problem.columns <= self.tuning.whole:
            self.gram.fetch(range(self.problem.columns))
            self._can_raise_diagonal = bool((self.gram.slot >= 0).all())


class LeastSquaresOracle(QuadraticOracle):
    """Bounds for least squares, from moments."""

    def __init__(
        self, gram: GramData, problem: Problem, scorer: Scorer, eta: float, tuning: Tuning
    ) -> None:
        yy = gram.yy / _SCALE
        # For large eta the envelope is smoothed more than the mechanism needs: the dual ascent
        # needs it, above all for joint constraints. A pick gains about y'y / k.
        steepest = 5000.0
        if problem.coefficients.is_joint():
            steepest = min(120.0 * problem.k, steepest)
        smooth = min(eta, steepest / yy) if yy > 0 else 1.0
        super().__init__(gram, problem, scorer, tuning, c=gram.c / _SCALE, yy=yy, scale=_SCALE,
                         eta=smooth)  # fmt: skip
        # For the balls the diagonal decides how hard a search is: small problems get one for each
        # region. With a large ridge most searches are easy, so they start with the ridge.
        small = problem.columns <= tuning.small and gram.whole
        self._diagonal_per_region = self.constraint.is_joint() and small
        if self._diagonal_per_region and problem.ridge < 0.05 * self._largest:
            self.diagonal_rule = RegionDiagonal(self)

    def add_block_bound(self, node: Node, parent: Node | None = None) -> None:
        """Set ``block_bound`` if there is one, with the parent's blocks if that is given."""
        if node.exact_gains is not None or node.region.picks[1]:
            return
        # Overflow makes a bound useless, not wrong; a warning would depend on the data.
        with np.errstate(all="ignore"), single_threaded_blas():
            blocks, starts = None, [node.b]
            if parent is None:
                blocks = self._find_blocks(node)
            elif parent.block_bound is not None:
                blocks = parent.block_bound.blocks
                starts.append(parent.block_bound.b)
            if blocks is None or not self._has_use(blocks, node):
                return
            mu, nu = float(node.point[MU]), float(node.point[NU])
            tried = []
            for start in starts:
                bound = BlockBound(blocks, self.column_status(node.region), self.constraint, self.c,
                                   start, mu, nu)  # fmt: skip
                bound.ascend(self.eta, node.region.picks[0])
                tried.append(bound)
            best = min(tried, key=lambda bound: bound.phi)
            best.certify(self.yy, self.penalty(node.region), 2 * self._largest,
                         self.problem.most_columns, self._scorer.score_step_float)  # fmt: skip
        node.block_bound = best

    def bound_each_support(self, node: Node) -> SupportBounds | None:
        """One bound for each support of a region with few supports; None if not available.

        Only the ball has one: a single multiplier removes its constraint.
        """
        region, gram = node.region, self.gram
        if not self.constraint.is_joint() or self.constraint.is_softened():
            return None
        if node.exact_gains is not None or self.problem.layout.grouped:
            return None
        if region.picks[1] or not region.picks[0]:
            return None
        if region.count() > min(self.tuning.solvable, MOST) or (gram.slot < 0).any():
            return None
        incumbent = self.problem.layout.of_support(np.array(node.incumbent()))
        # Overflow makes a bound useless, not wrong; a warning would depend on the data.
        with np.errstate(all="ignore"):
            return SupportBounds(gram.products, self.scale, self.problem.ridge, self.c,
                                 self.forced_columns(region), region.pool(0), region.picks[0],
                                 self.constraint.radius, self._largest, incumbent)  # fmt: skip

    def _has_use(self, blocks: Blocks, node: Node) -> bool:
        """Whether a block has columns of the region, and every d + mu is positive."""
        if self.constraint.is_joint():
            least = blocks.smallest_diagonal() + float(node.point[MU])
            if not least > 0.0:
                return False
        status = self.column_status(node.region)
        return bool((status[np.concatenate(blocks.columns)] != kernels.OUT).any())

    def _find_blocks(self, node: Node) -> Blocks | None:
        """Blocks of highly correlated columns among those that are likely to be picked."""
        problem, gram = self.problem, self.gram
        if problem.columns > self.tuning.whole or problem.layout.grouped:
            return None
        if self.constraint.is_softened() or (gram.slot < 0).any():
            return None
        forced, probabilities = self.forced_columns(node.region), np.zeros(problem.columns)
        probabilities[: problem.p] = kernels.inclusion_probabilities(
            *self._kernel_region(node.region), self.gains(node), self.eta
        )
        probabilities[forced] = 1.0
        # Small enough to make little difference where a column outside all blocks is picked.
        if self.constraint.is_joint():
            rest_shift = _REST_SHIFT * float(node.point[MU])
        else:
            rest_shift = _REST_SHIFT / max(self.eta * self._cap**2, 1e-300)
        return Blocks.find(gram.product_rows() / self.scale, problem.ridge, probabilities, forced,
                           rest_shift, self.tuning.blocks_least)  # fmt: skip
