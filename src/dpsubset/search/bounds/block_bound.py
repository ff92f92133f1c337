"""Block bounds: bounds for highly correlated columns, of which one is almost as good as two.

With H = M + Q of `blocks`, for every b, with u = Qb and w = c - u,

    f(S) >= yy - b'Qb - extra - sum over the blocks of G_c(S within the block),
    G_c(T) = the maximum of 2 w'v - v'M_c v over the v on T.

For one column v'M_c v = M_jj v^2, and G_c is its gain with d = M_jj. For more columns, with M_c =
N_c + d I, N_c positive semidefinite, and any point a of the block, v'N_c v >= 2 a'N_c v - a'N_c a,
so that

    G_c(T) <= a'N_c a + sum over T of the gains of w - N_c a with d.

Each number of picks from a block, its class, has its own a, and for each class the bound is
modular: sums over all supports of a region are products of short polynomials, one for each block.

The point (b, and an a for each class) is found by the same fixed-point iteration as for a modular
bound: the sum is smallest where b and a are the means of the coefficients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import ROUNDING, Array, Ints
from ...constraints.base import Constraint, extra
from . import block_kernels, kernels
from .blocks import Blocks

#: Classes of a block: its number of picks; the last class is for all larger numbers.
CLASSES = 5
#: Most steps of the ascent, and how often a step is halved.
_MAX_STEPS, _MAX_HALVINGS = 40, 10
#: The ascent ends when its step is shorter than this.
_MIN_STEP = 1e-7


class BlockBound:
    """The block bound of a region with one pool.

    Attributes
    ----------
    base : float
        The part of the bound that does not depend on the picks.
    magnitude : float
        A bound on the sum of the absolute values of gains and constants.
    phi : float
        The log of the sum that the ascent has reached.
    columns : int array, blocks x width
        The columns of each block that are not forced out.
    free : bool array
        Which of them can be picked.
    gains : array, blocks x classes x width
    consts : array, blocks x classes
    rest, rest_gains : arrays
        The free columns outside all blocks, and their gains.
    """

    def __init__(
        self, blocks: Blocks, column_status: NDArray[np.int8], constraint: Constraint, c: Array,
        start: Array, mu: float, nu: float,
    ) -> None:  # fmt: skip
        self.blocks, self._constraint, self._c = blocks, constraint, c
        self._mu, self._nu = mu, nu
        self._set_columns(column_status)
        self.b = start.copy()
        self._a = np.zeros((len(self.columns), CLASSES, self.columns.shape[1]))
        self._a[:] = np.where(self._used, self.b[self.columns], 0.0)[:, None, :]
        self.base, self.magnitude, self.phi = -np.inf, np.inf, np.inf

    def _set_columns(self, column_status: NDArray[np.int8]) -> None:
        """Arrange the region's columns by block, padded to equal width."""
        in_block = np.zeros(len(column_status), dtype=np.bool_)
        kept: list[tuple[Ints, Array, Array, float]] = []
        blocks = self.blocks
        for block, matrix, residual, shift_of_block in zip(
            blocks.columns, blocks.matrices, blocks.residuals, blocks.shifts, strict=True
        ):
            in_block[block] = True
            inside = np.flatnonzero(column_status[block] != kernels.OUT)
            if len(inside):
                within = residual[np.ix_(inside, inside)]
                kept.append((block[inside], np.diag(matrix)[inside], within, shift_of_block))
        for j in np.flatnonzero((column_status == kernels.IN) & ~in_block):
            d = blocks.rest_diagonal
            kept.append((np.array([j]), np.array([d]), np.zeros((1, 1)), d))
        width = max(len(block) for block, *_ in kept)
        self.columns = np.zeros((len(kept), width), dtype=np.int64)
        self._used = np.zeros((len(kept), width), dtype=np.bool_)
        self._n = np.zeros((len(kept), width, width))
        single_d, shift = np.zeros((len(kept), 1, width)), np.zeros((len(kept), 1, 1))
        for i, (block, diagonal, residual, shift_of_block) in enumerate(kept):
            self.columns[i, : len(block)] = block
            self._used[i, : len(block)] = True
            self._n[i, : len(block), : len(block)] = residual
            # Unused places get a d of the block: with 0 a gain might divide by it.
            single_d[i], shift[i] = shift_of_block, shift_of_block
            single_d[i, 0, : len(block)] = diagonal
        status = column_status[self.columns]
        self.free = self._used & (status == kernels.FREE)
        self._forced = self._used & (status == kernels.IN)
        self.rest = np.flatnonzero((column_status == kernels.FREE) & ~in_block)
        # Classes with at most one column in the block: d = M_jj, and a = 0.
        number = self._forced.sum(axis=1)[:, None] + np.arange(CLASSES)
        self._single = number <= 1
        self._d = np.where(self._single[:, :, None], single_d, shift)
        self._smallest_diagonal = float(min(single_d[:, 0][self._used].min(), shift.min()))

    def ascend(self, eta: float, picks: int) -> None:
        """Improve b and the points of the classes as long as that reduces phi."""
        self._eta, self._picks = eta, picks
        now = self._evaluate(self.b, self._product(self.b), self._a)
        step, class_step = 0.5, 0.5
        for _ in range(_MAX_STEPS):
            before = now.phi
            class_step = min(2.0 * class_step, 1.0)
            direction = now.points - self._a
            for _ in range(_MAX_HALVINGS):
                candidate = self._evaluate(self.b, now.u, self._a + class_step * direction)
                if candidate.phi < now.phi:
                    self._a, now = self._a + class_step * direction, candidate
                    break
                class_step *= 0.5
            b_step = now.mean - self.b
            u_step = self._product(b_step)
            step = min(2.0 * step, 2.0)
            failed = True
            for _ in range(_MAX_HALVINGS):
                candidate = self._evaluate(self.b + step * b_step, now.u + step * u_step, self._a)
                if candidate.phi < now.phi:
                    self.b, now, failed = self.b + step * b_step, candidate, False
                    break
                step *= 0.5
            # In ill-conditioned problems the first useful step may be far shorter than those tried.
            if (not failed and eta * (before - now.phi) < 0.02) or step < _MIN_STEP:
                break
        self.phi = now.phi

    def certify(self, yy: float, penalty: float, size: float, k: int, score_step: float) -> None:
        """Compute the bound, lowered by a bound on all rounding errors.

        ``size`` is at least every entry of H and of Q; ``k`` is the most columns of a support.
        """
        u = self._product(self.b)
        offset = float(self.b @ u) + extra(self._constraint, self._mu, self._nu)
        self.gains, self.consts, _ = self._gains(self._c - u, self._a)
        self.rest_gains, _ = self._rest_gains(self._c - u)
        highest = float(np.maximum(self.gains.max(), self.rest_gains.max(initial=0.0)))
        self.magnitude = k * highest + float(np.abs(self.consts).max(axis=1).sum())
        self.base = yy + penalty - offset - float(self.consts[:, 0].sum())
        self.base -= self._rounding_margin(
            2 * yy + penalty + abs(offset), highest, size, k, score_step
        )
        if not math.isfinite(self.base):
            self.magnitude = math.inf
        # Many nodes may be kept: drop what only the ascent needed.
        del self._a, self._n, self._d, self._c

    def _rounding_margin(
        self, base_size: float, highest: float, size: float, k: int, score_step: float
    ) -> float:
        """See proofs/bounds.md, "Blocks". ``base_size`` bounds the terms of the base."""
        norm = float(np.abs(self.b).sum()) * (1.0 + 1e-9)
        points = float(np.abs(self._a).sum(axis=2).max(initial=0.0)) * (1.0 + 1e-9)
        blocks, width = self.columns.shape
        each = 8 * (len(self.b) + width + 16) * ROUNDING * size
        w_error = each * (norm + points) + 4 * ROUNDING * (float(np.abs(self._c).max()) + size)
        smallest_diagonal = (
            min(self._smallest_diagonal, self.blocks.rest_diagonal)
            if len(self.rest)
            else self._smallest_diagonal
        )
        gain_error = self._constraint.gain_error(
            k, highest, w_error, lambda: smallest_diagonal + self._mu
        )
        rounding = (5 * k + 8 * blocks + width + 64) * ROUNDING * (base_size + self.magnitude)
        return float(
            gain_error
            + each * norm * norm
            + blocks * each * points * points
            + rounding
            + 2 * score_step
        )

    def _product(self, b: Array) -> Array:
        """Q b."""
        u: Array = self.blocks.h @ b - self.blocks.rest_diagonal * b
        for block, matrix in zip(self.blocks.columns, self.blocks.matrices, strict=True):
            u[block] -= matrix @ b[block] - self.blocks.rest_diagonal * b[block]
        return u

    def _rest_gains(self, w: Array) -> tuple[Array, Array]:
        """Gains and coefficients of the columns outside all blocks."""
        return self._each(w[self.rest], np.full(len(self.rest), self.blocks.rest_diagonal))

    def _each(self, w: Array, d: Array) -> tuple[Array, Array]:
        g, v = np.empty(len(w)), np.empty(len(w))
        block_kernels.gains_and_coefficients(self._constraint, w, d, self._mu, self._nu, g, v)
        return g, v

    def _gains(self, w: Array, a: Array) -> tuple[Array, Array, Array]:
        """Gains and constants of all classes, and the coefficients."""
        a = np.where(self._single[:, :, None], 0.0, a)
        product = np.einsum("cij,clj->cli", self._n, a)
        w_class = w[self.columns][:, None, :] - product
        g, v = (
            part.reshape(w_class.shape) for part in self._each(w_class.ravel(), self._d.ravel())
        )
        forced = self._forced[:, None, :]
        consts = np.einsum("cli,cli->cl", a, product) + np.where(forced, g, 0.0).sum(axis=2)
        return np.where(self._used[:, None, :], g, 0.0), consts, v

    def _evaluate(self, b: Array, u: Array, a: Array) -> _Evaluation:
        """Phi at a point, and the point that the fixed-point iteration proposes next."""
        w = self._c - u
        gains, consts, v = self._gains(w, a)
        rest, single_d = self._rest_gains(w)
        log_rest = -np.inf
        if len(rest):
            high = float(rest.max())
            weights = np.exp(self._eta * (rest - high))
            log_rest = self._eta * high + float(np.log(weights.sum()))
        pi, occupied = np.empty(gains.shape), np.empty(consts.shape)
        total, from_rest = block_kernels.evaluate_blocks(
            gains, consts, self.free, log_rest, self._eta, self._picks, pi, occupied
        )
        # Beyond the range of float64 there is no next point.
        if not (math.isfinite(total) and np.isfinite(occupied).all()):
            return _Evaluation(math.inf, u, b, a)
        pi += np.where(self._forced[:, None, :], occupied[:, :, None], 0.0)
        mean = np.zeros(len(b))
        mean[self.columns[self._used]] = (pi * v).sum(axis=1)[self._used]
        if len(rest):
            mean[self.rest] = from_rest * weights / weights.sum() * single_d
        points = pi * v / np.maximum(occupied, 1e-9)[:, :, None]
        return _Evaluation(float(b @ u) + total / self._eta, u, mean, points)


@dataclass(repr=False)
class _Evaluation:
    """Phi at a point with this u; b and the class points that the iteration proposes next."""

    phi: float
    u: Array
    mean: Array
    points: Array
