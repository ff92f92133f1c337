"""Blocks: what is taken out of H where columns are alike.

Where several columns say the same, a bound that takes a diagonal out of H credits a support with
each of them. So a matrix M is taken out that has blocks of like columns on its diagonal: H = M + Q,
Q positive semidefinite. `blocked` makes bounds of it.

The more of H is in M, the better, above all in columns that are likely to be picked. M is therefore
near the matrix that maximises

    the sum over the blocks of <M_c, diag(weights)>,   weights the chances of being picked,

as long as H - M is positive semidefinite: the centre of a barrier for that, which block after block
comes to in closed form. Columns of no block are hardly ever picked. Theirs is a negative diagonal,
-cold: it makes each of them look better than it is, by as much as cold costs at the largest
coefficient, and it leaves more of H for the blocks. What a block shares with cold columns, and what
it could only lose to very many of them together, need not be kept for these.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpotrf

from ...base.kernels.arrays import ROUNDING, Array, Ints
from .blas import smallest_eigenvalue

#: Columns belong together if their correlation is above this, in a block of at most so many.
_ALIKE, _WIDEST = 0.4, 32
#: Most blocks; and fewer, if those have this share of all picks.
_MOST, _COVERED = 32, 0.98
#: Chances of being picked count as no less than this: a column with less would have its part of M
#: made as negative as others find useful.
_LEAST_CHANCE = 0.03
#: Sweeps over the blocks, and from where to where the barrier goes meanwhile, in parts of what the
#: columns of blocks have in H.
_SWEEPS, _FIRST_BARRIER, _LAST_BARRIER = 6, 0.16, 0.01
#: Of all of M, for what rounding may have added to it.
_GIVEN_BACK = 1e-3


def _nudge(length: int, size: float) -> float:
    """What rounding can hide from a factorisation, several times over.

    Of so many rows, with entries up to ``size``.
    """
    return 64 * (length + 4) * ROUNDING * max(length * size, 1e-300)


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
        M on the columns of each block.
    beside : float
        M on the diagonal of all other columns, where it has nothing else.
    bents, evens : lists of arrays and of floats
        N and d of each block: no more than M together, and N is positive semidefinite.
    """

    h: Array
    columns: list[Ints]
    matrices: list[Array]
    bents: list[Array]
    evens: list[float]
    beside: float

    @classmethod
    def find(
        cls, gram: Array, ridge: float, chances: Array, apart: Ints, cold: float, least: int
    ) -> Blocks | None:
        """Blocks around the columns with the best ``chances``; those ``apart`` are by themselves.

        ``gram`` is H without the ridge. None if fewer than ``least`` columns are alike, or if it is
        too near to being singular for anything to be taken out of it.
        """
        columns = _clusters(gram, chances, apart)
        if sum(len(block) for block in columns if len(block) > 1) < least:
            return None
        columns += [np.array([j]) for j in apart.tolist()]
        largest = float(gram.diagonal().max())
        cold = min(cold, largest)
        try:
            matrices = _taken(gram, columns, chances, cold)
        except (LinAlgError, np.linalg.LinAlgError):
            return None
        beside = np.ones(len(gram), dtype=np.bool_)
        beside[np.concatenate(columns)] = False
        cold *= 1.0 - _GIVEN_BACK
        left = gram.copy()
        left[beside, beside] += cold
        for block, matrix in zip(columns, matrices, strict=True):
            left[np.ix_(block, block)] -= matrix
        if not _positive(left, largest):
            return None
        evens, bents = [], []
        for matrix in matrices:
            here, bent = np.diag_indices_from(matrix), matrix.copy()
            even = smallest_eigenvalue(matrix) - 4.0 * _nudge(len(matrix), largest)
            # Rounded down: less than there is may always be taken out.
            bent[here] = _lowered(bent[here] - even, 2.0**-49)
            if even < -largest or not _positive(bent, largest):
                return None
            evens.append(float(_lowered(np.array(even + ridge), 2.0**-49)))
            matrix[here] = _lowered(matrix[here] + ridge, 2.0**-51)
            bents.append(bent)
        gram[np.diag_indices_from(gram)] += ridge
        level = float(_lowered(np.array(ridge - cold), 2.0**-51))
        return cls(gram, columns, matrices, bents, evens, level)

    def softest(self) -> float:
        """The least d of any column, by itself or as one of several."""
        diagonals = [float(matrix.diagonal().min()) for matrix in self.matrices]
        return min(*diagonals, *self.evens, self.beside)


def _lowered(values: Array, part: float) -> Array:
    """Less by a part of their size, whatever their sign."""
    return np.asarray(values - part * np.abs(values))


def _taken(gram: Array, columns: list[Ints], chances: Array, cold: float) -> list[Array]:
    """M on the columns of each block."""
    every = np.concatenate(columns)
    others = np.setdiff1d(np.arange(len(gram)), every)
    own = gram[np.ix_(every, every)]
    if len(others):
        beside = gram[np.ix_(others, others)]
        beside[np.diag_indices_from(beside)] += cold
        across = gram[np.ix_(others, every)]
        own -= across.T @ _solve(beside, across)
    inverse = _solve(own, np.eye(len(own)))
    diagonal = gram.diagonal()[every]
    size = np.maximum(diagonal, 1e-3 * diagonal.max()) / np.maximum(chances[every], _LEAST_CHANCE)
    size *= float(chances[every].sum()) / len(every)
    ends = np.cumsum([0, *map(len, columns)])
    parts = [slice(*ends) for ends in itertools.pairwise(ends)]
    matrices = [np.zeros((len(block), len(block))) for block in columns]
    for barrier in np.geomspace(_FIRST_BARRIER, _LAST_BARRIER, _SWEEPS):
        for matrix, at in zip(matrices, parts, strict=True):
            # All that the block could have, given what others have. Of that as much is left
            # as the barrier wants, but never all: M stays positive semidefinite.
            room = np.linalg.inv(inverse[at, at])
            most = 0.5 * (room + room.T) + matrix
            wanted = np.linalg.inv(most) + np.diag(1.0 / (barrier * size[at]))
            matrix[:] = most - np.linalg.inv(wanted)
            matrix[:] = 0.5 * (matrix + matrix.T)
            beside = inverse[:, at] @ room
            inverse += beside @ (wanted - inverse[at, at]) @ beside.T
        inverse = 0.5 * (inverse + inverse.T)
    return [(1.0 - _GIVEN_BACK) * matrix for matrix in matrices]


def _solve(matrix: Array, right: Array) -> Array:
    factor = cho_factor(matrix, lower=True, check_finite=False)
    return np.asarray(cho_solve(factor, right, check_finite=False))


def _positive(matrix: Array, size: float) -> bool:
    """Whether a matrix is positive semidefinite, by what a factorisation proves of it.

    No number that it was computed from is larger than ``size``.
    """
    lowered = matrix.copy()
    lowered[np.diag_indices_from(lowered)] -= 2.0 * _nudge(len(matrix), size)
    return bool(np.isfinite(lowered).all()) and dpotrf(lowered, lower=1)[1] == 0


def _clusters(gram: Array, chances: Array, apart: Ints) -> list[Ints]:
    """The columns most like each likely one, of those that are left."""
    size = np.sqrt(np.diag(gram))
    left = size > 0.0
    left[apart] = False
    chances = np.where(left, chances, 0.0)
    found: list[Ints] = []
    covered, all_picks = 0.0, float(chances.sum())
    for j in np.argsort(-chances, kind="stable").tolist():
        if len(found) == _MOST or covered >= _COVERED * all_picks:
            break
        if not left[j]:
            continue
        alike = np.abs(gram[j]) / (size * size[j] + (size == 0.0))
        near = np.flatnonzero(left & (alike > _ALIKE))
        if len(near) > _WIDEST:
            near = np.sort(near[np.argsort(-alike[near], kind="stable")[:_WIDEST]])
        left[near] = False
        covered += float(chances[near].sum())
        found.append(near)
    return found
