"""Blocks: bounds that know that of columns which are alike one is almost as good as two.

Where several columns say the same, a modular bound credits a support with each of them. So not a
diagonal is taken out of H but a matrix M with blocks of like columns on its diagonal: H = M + Q, Q
positive semidefinite. For every b, with u = Qb and w = c - u,

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
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpotrf

from ...constraints.base import Constraint, extra
from ...kernels.arrays import ROUNDING, Array, Ints
from . import block_kernels, kernels
from .blas import one_thread, smallest_eigenvalue

#: Columns belong together if their correlation is above this, in a block of at most so many.
_ALIKE, _WIDEST = 0.5, 32
#: Most blocks.
_MOST = 64
#: The share of its room that the hottest block takes; the next take less, those behind this many
#: little. Together they must not take all of a direction that they have in common: it could not be
#: computed any more what is left of it.
_SHARE, _LEADING, _LEAST_SHARE = 0.8, 30, 0.05
#: Of each share, for what rounding may have added to it.
_GIVEN_BACK = 1e-3
#: Classes of a block: by its number of picks, the last one for so many or more.
CLASSES = 5
#: Most moves of a point, and how often a step is halved.
_MOVES, _HALVINGS = 40, 10
#: Steps that are too short to go on with.
_SHORTEST = 1e-7


def _nudge(matrix: Array) -> float:
    """What rounding can hide from a factorisation of a positive matrix, several times over."""
    return 64 * (len(matrix) + 4) * ROUNDING * max(float(np.trace(matrix)), 1e-300)


@dataclass(repr=False)  # which columns are alike depends on the data
class Blocks:
    """H = M + Q.

    Attributes
    ----------
    h : array
        H as computed, with two roundings an entry and a third on its diagonal.
    columns : list of arrays
        Those of each block, none in two.
    matrices : list of arrays
        M on the columns of each block; it is ``ridge`` on all others.
    bents, evens : lists of arrays and of floats
        N and d of each block: no more than M together, and N is positive semidefinite.
    ridge : float
    """

    h: Array
    columns: list[Ints]
    matrices: list[Array]
    bents: list[Array]
    evens: list[float]
    ridge: float

    @classmethod
    def find(cls, gram: Array, ridge: float, hot: Ints, apart: Ints, least: int) -> Blocks | None:
        """Blocks around the ``hot`` columns, best first; those ``apart`` are by themselves.

        ``gram`` is H without the ridge. None if fewer than ``least`` columns are alike, or if it is
        too near to being singular for anything to be taken out of it.
        """
        columns = _clusters(gram, hot, apart)
        if sum(len(block) for block in columns if len(block) > 1) < least:
            return None
        columns += [np.array([j]) for j in apart.tolist()]
        with one_thread():
            try:
                matrices = _taken(gram, columns)
            except (LinAlgError, np.linalg.LinAlgError):
                return None
            left = gram.copy()
            for block, matrix in zip(columns, matrices, strict=True):
                left[np.ix_(block, block)] -= matrix
            if not _positive(left, gram):
                return None
            evens = [_even(matrix) for matrix in matrices]
        bents = []
        for i, (matrix, even) in enumerate(zip(matrices, evens, strict=True)):
            here, bent = np.diag_indices_from(matrix), matrix.copy()
            if even < 0.0:
                return None
            # Rounded down: less than there is may always be taken out.
            bent[here] = (bent[here] - even) * (1.0 - 2.0**-50)
            matrix[here] = (matrix[here] + ridge) * (1.0 - 2.0**-52)
            evens[i] = (even + ridge) * (1.0 - 2.0**-50)
            bents.append(bent)
        gram[np.diag_indices_from(gram)] += ridge
        return cls(gram, columns, matrices, bents, evens, ridge)


def _taken(gram: Array, columns: list[Ints]) -> list[Array]:
    """For each block a share of what could be taken out of it, after the blocks before it."""
    every = np.concatenate(columns)
    unit = np.zeros((len(gram), len(every)))
    unit[every, np.arange(len(every))] = 1.0
    # Of the inverse of what is left only the part that belongs to blocks is needed.
    inverse = cho_solve(cho_factor(gram, lower=True, check_finite=False), unit)[every]
    matrices, end = [], 0
    for rank, block in enumerate(columns):
        share = max(_SHARE * (1.0 - rank / _LEADING), _LEAST_SHARE)
        at = slice(end, end + len(block))
        end += len(block)
        room = np.linalg.inv(inverse[at, at])
        room = 0.5 * (room + room.T)
        beside = inverse[:, at]
        inverse += (share / (1.0 - share)) * ((beside @ room) @ beside.T)
        matrices.append((1.0 - _GIVEN_BACK) * share * room)
    return matrices


def _even(matrix: Array) -> float:
    """A part of the identity that leaves a matrix positive semidefinite; -1 if there is none."""
    even = max(0.5 * smallest_eigenvalue(matrix), 0.0)
    lowered = matrix - np.diag(np.full(len(matrix), even))
    return even if _positive(lowered, matrix) else -1.0


def _positive(matrix: Array, of: Array | None = None) -> bool:
    """Whether a matrix is positive semidefinite, by what a factorisation proves of it.

    ``of`` is a matrix from which it was computed, if that has larger entries.
    """
    lowered = matrix.copy()
    lowered[np.diag_indices_from(lowered)] -= 2.0 * _nudge(matrix if of is None else of)
    return bool(np.isfinite(lowered).all()) and dpotrf(lowered, lower=1)[1] == 0


def _clusters(gram: Array, hot: Ints, apart: Ints) -> list[Ints]:
    """The columns most like each hot one, of those that are left."""
    size = np.sqrt(np.diag(gram))
    left = size > 0.0
    left[apart] = False
    found: list[Ints] = []
    for j in hot.tolist():
        if not left[j] or len(found) == _MOST:
            continue
        alike = np.abs(gram[j]) / (size * size[j] + (size == 0.0))
        near = np.flatnonzero(left & (alike > _ALIKE))
        if len(near) > _WIDEST:
            near = np.sort(near[np.argsort(-alike[near], kind="stable")[:_WIDEST]])
        left[near] = False
        found.append(near)
    return found


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
            kept.append((np.array([j]), np.array([blocks.ridge]), np.zeros((1, 1)), blocks.ridge))
        width = max(len(block) for block, *_ in kept)
        self.columns = np.zeros((len(kept), width), dtype=np.int64)
        self._used = np.zeros((len(kept), width), dtype=np.bool_)
        self._n = np.zeros((len(kept), width, width))
        own, even = np.zeros((len(kept), 1, width)), np.zeros((len(kept), 1, 1))
        for i, (block, diagonal, bent, softer) in enumerate(kept):
            self.columns[i, : len(block)] = block
            self._used[i, : len(block)] = True
            self._n[i, : len(block), : len(block)] = bent
            own[i, 0, : len(block)], even[i] = diagonal, softer
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
        highest = max(float(self.gains.max()), float(self.rest_gains.max(initial=0.0)))
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
        softest = min(self._softest, self.blocks.ridge) if len(self.rest) else self._softest
        gain_error = self._constraint.gain_error(k, highest, w_error, lambda: softest + self._mu)
        rounding = (5 * k + 8 * blocks + width + 64) * ROUNDING * (held + self.swing)
        return float(
            gain_error + each * norm * norm + blocks * each * points * points + rounding + 2 * unit
        )

    # -- a point and what it is worth ------------------------------------------------------------

    def _product(self, b: Array) -> Array:
        """Q b."""
        u: Array = self.blocks.h @ b - self.blocks.ridge * b
        for block, matrix in zip(self.blocks.columns, self.blocks.matrices, strict=True):
            u[block] -= matrix @ b[block] - self.blocks.ridge * b[block]
        return u

    def _alone_gains(self, w: Array) -> tuple[Array, Array]:
        """Gains and coefficients of the columns of no block."""
        return self._each(w[self.rest], np.full(len(self.rest), self.blocks.ridge))

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
