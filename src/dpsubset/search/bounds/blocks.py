"""Blocks: which part of H a bound may use where columns are highly correlated.

A bound that subtracts a diagonal from H credits a support with the full gain of each of several
correlated columns. Here a matrix M is subtracted that has blocks of correlated columns on its
diagonal: H = M + Q with Q positive semidefinite. `block_bound` computes bounds from it.

The larger M, the better, above all in columns that are likely to be picked. M is therefore near the
matrix that maximises

    the sum over the blocks of <M_c, diag(weights)>,   weights the inclusion probabilities,

subject to H - M being positive semidefinite: the centre of a barrier for that constraint, which
has a closed form for one block at a time. Columns outside all blocks (the rest) are hardly ever
picked. They get the negative diagonal entry -rest_shift: this increases the gain of each of them by
at most rest_shift times the largest coefficient squared, and leaves more of H for the blocks, which
need not keep what they share with the rest.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpotrf

from ...base.kernels.arrays import Array, Ints
from .linear_algebra import factorisation_error, smallest_eigenvalue

#: Columns with a correlation above this share a block, of at most so many columns.
_MIN_CORRELATION, _MAX_BLOCK = 0.4, 32
#: Most blocks; fewer if these account for this fraction of all picks.
_MAX_BLOCKS, _MIN_COVERED = 32, 0.98
#: Inclusion probabilities are raised to at least this: otherwise the optimal M would be very
#: negative in columns with small ones.
_MIN_PROBABILITY = 0.03
#: Sweeps over the blocks, and the first and last weight of the barrier, relative to the diagonal of
#: H on the columns of blocks.
_SWEEPS, _FIRST_BARRIER, _LAST_BARRIER = 6, 0.16, 0.01
#: M is reduced by this fraction, for the rounding errors in it.
_SAFETY_MARGIN = 1e-3


@dataclass(repr=False)  # which columns are correlated depends on the data
class Blocks:
    """H = M + Q."""

    #: H as computed, with two roundings an entry and a third on its diagonal.
    h: Array
    #: The columns of each block; blocks are disjoint.
    columns: list[Ints]
    #: M on the columns of each block.
    matrices: list[Array]
    #: N and d of each block, with N + d I no larger than M and N positive semidefinite.
    residuals: list[Array]
    shifts: list[float]
    #: The diagonal entry of M for columns outside all blocks.
    rest_diagonal: float

    @classmethod
    def find(
        cls, gram: Array, ridge: float, probabilities: Array, forced: Ints, rest_shift: float,
        least: int,
    ) -> Blocks | None:  # fmt: skip
        """Blocks around the columns with the largest ``probabilities``.

        ``gram`` is H without the ridge; columns ``forced`` in become blocks of one. Returns None
        if fewer than ``least`` columns are in blocks of several, or if H is too close to singular.
        """
        columns = _clusters(gram, probabilities, forced)
        if sum(len(block) for block in columns if len(block) > 1) < least:
            return None
        columns += [np.array([j]) for j in forced.tolist()]
        largest = float(gram.diagonal().max())
        rest_shift = min(rest_shift, largest)
        try:
            matrices = _barrier_centre(gram, columns, probabilities, rest_shift)
        except (LinAlgError, np.linalg.LinAlgError):
            return None
        rest = np.ones(len(gram), dtype=np.bool_)
        rest[np.concatenate(columns)] = False
        rest_shift *= 1.0 - _SAFETY_MARGIN
        q = gram.copy()
        q[rest, rest] += rest_shift
        for block, matrix in zip(columns, matrices, strict=True):
            q[np.ix_(block, block)] -= matrix
        if not _is_positive_semidefinite(q, largest):
            return None
        shifts, residuals = [], []
        for matrix in matrices:
            diagonal, residual, rows = np.diag_indices_from(matrix), matrix.copy(), len(matrix)
            error = factorisation_error(rows, rows * largest)
            shift = smallest_eigenvalue(matrix) - 4.0 * error
            # Rounded down: a smaller M is valid.
            residual[diagonal] = _round_down(residual[diagonal] - shift, 2.0**-49)
            if shift < -largest or not _is_positive_semidefinite(residual, largest):
                return None
            shifts.append(float(_round_down(np.array(shift + ridge), 2.0**-49)))
            matrix[diagonal] = _round_down(matrix[diagonal] + ridge, 2.0**-51)
            residuals.append(residual)
        gram[np.diag_indices_from(gram)] += ridge
        rest_diagonal = float(_round_down(np.array(ridge - rest_shift), 2.0**-51))
        return cls(gram, columns, matrices, residuals, shifts, rest_diagonal)

    def smallest_diagonal(self) -> float:
        """The smallest d of any column, as a single pick of its block or as one of several."""
        diagonals = [float(matrix.diagonal().min()) for matrix in self.matrices]
        return min(*diagonals, *self.shifts, self.rest_diagonal)


def _round_down(values: Array, relative: float) -> Array:
    return np.asarray(values - relative * np.abs(values))


def _barrier_centre(
    gram: Array, columns: list[Ints], probabilities: Array, rest_shift: float
) -> list[Array]:
    """M on the columns of each block, by block coordinate steps on the barrier."""
    every = np.concatenate(columns)
    others = np.setdiff1d(np.arange(len(gram)), every)
    own = gram[np.ix_(every, every)]
    if len(others):
        rest = gram[np.ix_(others, others)]
        rest[np.diag_indices_from(rest)] += rest_shift
        across = gram[np.ix_(others, every)]
        own -= across.T @ _solve(rest, across)
    inverse = _solve(own, np.eye(len(own)))
    diagonal = gram.diagonal()[every]
    weights = np.maximum(probabilities[every], _MIN_PROBABILITY)
    size = np.maximum(diagonal, 1e-3 * diagonal.max()) / weights
    size *= float(probabilities[every].sum()) / len(every)
    ends = np.cumsum([0, *map(len, columns)])
    parts = [slice(*ends) for ends in itertools.pairwise(ends)]
    matrices = [np.zeros((len(block), len(block))) for block in columns]
    for barrier in np.geomspace(_FIRST_BARRIER, _LAST_BARRIER, _SWEEPS):
        for matrix, at in zip(matrices, parts, strict=True):
            # The largest M_c that the other blocks allow, less what the barrier keeps; never all of
            # it, so that M_c stays positive semidefinite.
            slack = np.linalg.inv(inverse[at, at])
            largest = 0.5 * (slack + slack.T) + matrix
            kept = np.linalg.inv(largest) + np.diag(1.0 / (barrier * size[at]))
            matrix[:] = largest - np.linalg.inv(kept)
            matrix[:] = 0.5 * (matrix + matrix.T)
            update = inverse[:, at] @ slack
            inverse += update @ (kept - inverse[at, at]) @ update.T
        inverse = 0.5 * (inverse + inverse.T)
    return [(1.0 - _SAFETY_MARGIN) * matrix for matrix in matrices]


def _solve(matrix: Array, right: Array) -> Array:
    factor = cho_factor(matrix, lower=True, check_finite=False)
    return np.asarray(cho_solve(factor, right, check_finite=False))


def _is_positive_semidefinite(matrix: Array, size: float) -> bool:
    """Whether a Cholesky factorisation proves that a matrix is positive semidefinite.

    No number that it was computed from is larger than ``size``.
    """
    rows, lowered = len(matrix), matrix.copy()
    lowered[np.diag_indices_from(lowered)] -= 2.0 * factorisation_error(rows, rows * size)
    return bool(np.isfinite(lowered).all()) and dpotrf(lowered, lower=1)[1] == 0


def _clusters(gram: Array, probabilities: Array, forced: Ints) -> list[Ints]:
    """Group each likely column with those most correlated with it that have no block yet."""
    size = np.sqrt(np.diag(gram))
    left = size > 0.0
    left[forced] = False
    probabilities = np.where(left, probabilities, 0.0)
    found: list[Ints] = []
    covered, all_picks = 0.0, float(probabilities.sum())
    for j in np.argsort(-probabilities, kind="stable").tolist():
        if len(found) == _MAX_BLOCKS or covered >= _MIN_COVERED * all_picks:
            break
        if not left[j]:
            continue
        correlation = np.abs(gram[j]) / (size * size[j] + (size == 0.0))
        near = np.flatnonzero(left & (correlation > _MIN_CORRELATION))
        if len(near) > _MAX_BLOCK:
            near = np.sort(near[np.argsort(-correlation[near], kind="stable")[:_MAX_BLOCK]])
        left[near] = False
        covered += float(probabilities[near].sum())
        found.append(near)
    return found
