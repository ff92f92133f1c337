"""The bound of a region by blocks: of columns that are alike one is almost as good as two.

With H = M + Q of `blocks`, for every b, with u = Qb and w = c - u,

    f(S) >= yy - b'Qb - extra - sum over the blocks of G_c(S within the block),
    G_c(T) = the largest 2 w'v - v'M_c v over the v on T.

One column has v'M_c v = M_jj v^2, its gain with d = M_jj. For more, with M_c = N_c + d I, N_c
positive semidefinite, and any a of the block, v'N_c v >= 2 a'N_c v - a'N_c a, so that

    G_c(T) <= a'N_c a + sum over T of the gains of w - N_c a with d.

Each number of picks has its own a, and for each the bound is modular: sums over all supports of a
region are products of short polynomials, one a block.

The point (b, and an a for each class) follows from the same fixed point as that of a modular bound:
the sum is smallest where b and a are what coefficients are in the mean.
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

#: Classes of a block: by its number of picks, the last one for so many or more.
CLASSES = 5
#: Most moves of a point, and how often a step is halved.
_MOVES, _HALVINGS = 40, 10
#: Steps that are too short to go on with.
_SHORTEST = 1e-7


class Blocked:
    """The block bound of a region with one pool.

    Attributes
    ----------
    base : float
        What no picked column carries.
    swing : float
        The size of what gains and constants add up to, at most.
    phi : float
        What the ascent came to.
    columns : int array, blocks x width
        The columns of each block, of those that are not forced out.
    free : bool array
        Which of them can be picked.
    gains : array, blocks x classes x width
    consts : array, blocks x classes
    rest, rest_gains : arrays
        The free columns of no block, and their gains.
    """

    def __init__(
        self, blocks: Blocks, cells: NDArray[np.int8], constraint: Constraint, c: Array,
        start: Array, mu: float, nu: float,
    ) -> None:  # fmt: skip
        self.blocks, self._constraint, self._c = blocks, constraint, c
        self._mu, self._nu = mu, nu
        self._arrange(cells)
        self.b = start.copy()
        self._a = np.zeros((len(self.columns), CLASSES, self.columns.shape[1]))
        self._a[:] = np.where(self._used, self.b[self.columns], 0.0)[:, None, :]
        self.base, self.swing, self.phi = -np.inf, np.inf, np.inf

    def _arrange(self, cells: NDArray[np.int8]) -> None:
        """The region's columns, block by block."""
        home = np.zeros(len(cells), dtype=np.bool_)
        kept: list[tuple[Ints, Array, Array, float]] = []
        blocks = self.blocks
        for block, matrix, bent, softer in zip(
            blocks.columns, blocks.matrices, blocks.bents, blocks.evens, strict=True
        ):
            home[block] = True
            inside = np.flatnonzero(cells[block] != kernels.OUT)
            if len(inside):
                within = bent[np.ix_(inside, inside)]
                kept.append((block[inside], np.diag(matrix)[inside], within, softer))
        for j in np.flatnonzero((cells == kernels.IN) & ~home):
            kept.append((np.array([j]), np.array([blocks.beside]), np.zeros((1, 1)), blocks.beside))
        width = max(len(block) for block, *_ in kept)
        self.columns = np.zeros((len(kept), width), dtype=np.int64)
        self._used = np.zeros((len(kept), width), dtype=np.bool_)
        self._n = np.zeros((len(kept), width, width))
        own, even = np.zeros((len(kept), 1, width)), np.zeros((len(kept), 1, 1))
        for i, (block, diagonal, bent, softer) in enumerate(kept):
            self.columns[i, : len(block)] = block
            self._used[i, : len(block)] = True
            self._n[i, : len(block), : len(block)] = bent
            # Places that are not used have a d that others have: with 0 a gain might divide by it.
            own[i], even[i] = softer, softer
            own[i, 0, : len(block)] = diagonal
        status = cells[self.columns]
        self.free = self._used & (status == kernels.FREE)
        self._forced = self._used & (status == kernels.IN)
        self.rest = np.flatnonzero((cells == kernels.FREE) & ~home)
        # Classes with no more than one column in the block: d = M_jj, and a = 0.
        number = self._forced.sum(axis=1)[:, None] + np.arange(CLASSES)
        self._alone = number <= 1
        self._d = np.where(self._alone[:, :, None], own, even)
        self._softest = float(min(own[:, 0][self._used].min(), even.min()))

    def ascend(self, eta: float, picks: int) -> None:
        """Move b and the points of the classes as long as that makes the sum smaller."""
        self._eta, self._picks = eta, picks
        now = self._look(self.b, self._product(self.b), self._a)
        step, turn = 0.5, 0.5
        for _ in range(_MOVES):
            was = now.phi
            turn = min(2.0 * turn, 1.0)
            away = now.points - self._a
            for _ in range(_HALVINGS):
                there = self._look(self.b, now.u, self._a + turn * away)
                if there.phi < now.phi:
                    self._a, now = self._a + turn * away, there
                    break
                turn *= 0.5
            move = now.mean - self.b
            along = self._product(move)
            step = min(2.0 * step, 2.0)
            missed = True
            for _ in range(_HALVINGS):
                there = self._look(self.b + step * move, now.u + step * along, self._a)
                if there.phi < now.phi:
                    self.b, now, missed = self.b + step * move, there, False
                    break
                step *= 0.5
            # On stiff tables the first useful step may be far shorter than those tried so far.
            if (not missed and eta * (was - now.phi) < 0.02) or step < _SHORTEST:
                break
        self.phi = now.phi

    def certify(self, yy: float, penalty: float, size: float, k: int, unit: float) -> None:
        """The bound, lowered by everything that rounding can have done to it.

        ``size`` is at least every entry of H and of Q, ``k`` the most columns of a support.
        """
        u = self._product(self.b)
        carried = float(self.b @ u) + extra(self._constraint, self._mu, self._nu)
        self.gains, self.consts, _ = self._gains(self._c - u, self._a)
        self.rest_gains, _ = self._alone_gains(self._c - u)
        highest = float(np.maximum(self.gains.max(), self.rest_gains.max(initial=0.0)))
        self.swing = k * highest + float(np.abs(self.consts).max(axis=1).sum())
        self.base = yy + penalty - carried - float(self.consts[:, 0].sum())
        self.base -= self._margin(2 * yy + penalty + abs(carried), highest, size, k, unit)
        if not math.isfinite(self.base):
            self.swing = math.inf
        # Many leaves may be kept: without what only the way to the bound needed.
        del self._a, self._n, self._d, self._c

    def _margin(self, held: float, highest: float, size: float, k: int, unit: float) -> float:
        """See proofs/bounds.md, "Blocks". ``held`` is the size of what the base is made of."""
        norm = float(np.abs(self.b).sum()) * (1.0 + 1e-9)
        points = float(np.abs(self._a).sum(axis=2).max(initial=0.0)) * (1.0 + 1e-9)
        blocks, width = self.columns.shape
        each = 8 * (len(self.b) + width + 16) * ROUNDING * size
        w_error = each * (norm + points) + 4 * ROUNDING * (float(np.abs(self._c).max()) + size)
        softest = min(self._softest, self.blocks.beside) if len(self.rest) else self._softest
        gain_error = self._constraint.gain_error(k, highest, w_error, lambda: softest + self._mu)
        rounding = (5 * k + 8 * blocks + width + 64) * ROUNDING * (held + self.swing)
        return float(
            gain_error + each * norm * norm + blocks * each * points * points + rounding + 2 * unit
        )

    # -- a point and what it is worth ------------------------------------------------------------

    def _product(self, b: Array) -> Array:
        """Q b."""
        u: Array = self.blocks.h @ b - self.blocks.beside * b
        for block, matrix in zip(self.blocks.columns, self.blocks.matrices, strict=True):
            u[block] -= matrix @ b[block] - self.blocks.beside * b[block]
        return u

    def _alone_gains(self, w: Array) -> tuple[Array, Array]:
        """Gains and coefficients of the columns of no block."""
        return self._each(w[self.rest], np.full(len(self.rest), self.blocks.beside))

    def _each(self, w: Array, d: Array) -> tuple[Array, Array]:
        g, v = np.empty(len(w)), np.empty(len(w))
        block_kernels.gains_and_coefficients(self._constraint, w, d, self._mu, self._nu, g, v)
        return g, v

    def _gains(self, w: Array, a: Array) -> tuple[Array, Array, Array]:
        """Gains and constants of all classes, and the coefficients."""
        a = np.where(self._alone[:, :, None], 0.0, a)
        product = np.einsum("cij,clj->cli", self._n, a)
        here = w[self.columns][:, None, :] - product
        g, v = (part.reshape(here.shape) for part in self._each(here.ravel(), self._d.ravel()))
        forced = self._forced[:, None, :]
        consts = np.einsum("cli,cli->cl", a, product) + np.where(forced, g, 0.0).sum(axis=2)
        return np.where(self._used[:, None, :], g, 0.0), consts, v

    def _look(self, b: Array, u: Array, a: Array) -> _Look:
        """Phi at a point, and where the next one should lie."""
        w = self._c - u
        gains, consts, v = self._gains(w, a)
        rest, own = self._alone_gains(w)
        together = -np.inf
        if len(rest):
            high = float(rest.max())
            weights = np.exp(self._eta * (rest - high))
            together = self._eta * high + float(np.log(weights.sum()))
        pi, occupied = np.empty(gains.shape), np.empty(consts.shape)
        total, from_rest = block_kernels.survey(
            gains, consts, self.free, together, self._eta, self._picks, pi, occupied
        )
        # Beyond float64 there is no place to go to.
        if not (math.isfinite(total) and np.isfinite(occupied).all()):
            return _Look(math.inf, u, b, a)
        pi += np.where(self._forced[:, None, :], occupied[:, :, None], 0.0)
        mean = np.zeros(len(b))
        mean[self.columns[self._used]] = (pi * v).sum(axis=1)[self._used]
        if len(rest):
            mean[self.rest] = from_rest * weights / weights.sum() * own
        points = pi * v / np.maximum(occupied, 1e-9)[:, :, None]
        return _Look(float(b @ u) + total / self._eta, u, mean, points)


@dataclass(repr=False)
class _Look:
    phi: float
    u: Array
    mean: Array
    points: Array
