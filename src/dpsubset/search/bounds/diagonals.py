"""Rules that choose the diagonal of a node: which part of H its gains may use.

A bound splits H = Q + diag(d). The larger d, the better the bound; Q must be positive semidefinite
on the columns that a support of the region and b can have together. The rules differ in how much
they use of that:

`SharedDiagonal`
    One diagonal for all regions. No time per region.
`RegionDiagonal`
    A diagonal for the columns that are not forced out. Cubic in their number, so for few columns.
`CoreDiagonal`
    A diagonal for the supports of the region. b is restricted to a core of few columns.

Every rule is valid in every region; a search starts with one and changes it when it turns out to
be hard. The oracle then asks the new rule for the children of all nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from ...base.kernels.arrays import ROUNDING, Array
from . import diagonal_kernels, kernels
from .base import Node
from .linear_algebra import smallest_eigenvalue

if TYPE_CHECKING:
    from .quadratic import QuadraticOracle

#: Most columns of a core, and how often it may be enlarged.
_MAX_CORE, _MAX_CORE_ROUNDS = 64, 3
#: After so many regions in a row in which a core did not help, no more cores are tried.
_MAX_FAILED_CORES = 64
#: How many columns near each column, beyond the most that a support has, are listed.
_MORE_NEAREST = 8
#: The part of the feasible increase that each sweep of coordinate ascent on the diagonal takes:
#: small at first, or the first columns would take everything.
_FIRST_SWEEPS = (0.1, 0.2, 0.3, 0.5)
_NEXT_SWEEPS = (0.15, 0.4)


class DiagonalRule(ABC):
    """Chooses the diagonals of the nodes of one oracle."""

    def __init__(self, oracle: QuadraticOracle) -> None:
        self._oracle = oracle

    def start_root(self, node: Node) -> None:  # noqa: B027
        """Set the diagonal of a root, whose dual point is 0."""

    @abstractmethod
    def evaluate_child(self, node: Node, parent: Node, rounds: int) -> Node:
        """Evaluate a node that has inherited the parent's dual point, or a better one."""


class SharedDiagonal(DiagonalRule):
    """The diagonal of the oracle, in all regions."""

    def evaluate_child(self, node: Node, parent: Node, rounds: int) -> Node:
        """Move to the shared diagonal if that has changed, and evaluate."""
        self._oracle.use_shared_diagonal(node)
        return self._oracle.evaluate(node, rounds)


class RegionDiagonal(DiagonalRule):
    """A diagonal for each region, with Q semidefinite on the columns that are not forced out."""

    def start_root(self, node: Node) -> None:
        """Compute the diagonal of the region."""
        self._raise(node, _FIRST_SWEEPS)

    def evaluate_child(self, node: Node, parent: Node, rounds: int) -> Node:
        """The better of the region's own diagonal and the parent's.

        The parent's can be better where the ridge is large.
        """
        oracle = self._oracle
        first = node.d is oracle.shared_diagonal
        self._raise(node, _FIRST_SWEEPS if first else _NEXT_SWEEPS)
        if oracle.evaluate(node, rounds).lower_bound >= parent.lower_bound:
            return node
        other = oracle.evaluate(parent.inherited(node.region), rounds)
        return other if other.lower_bound > node.lower_bound else node

    def _raise(self, node: Node, sweeps: tuple[float, ...]) -> None:
        """Raise d by coordinate ascent; columns forced in have d = 0, which leaves more for others.

        The node keeps its diagonal if rounding prevents a proof that the new one is valid.
        """
        oracle = self._oracle
        status = oracle.column_status(node.region)
        outside = status == kernels.OUT
        columns = np.flatnonzero(~outside)
        free = status[columns] != kernels.IN
        h, error = oracle.quadratic_form(oracle.gram.block(columns))
        d = np.where(free, node.d[columns], 0.0)
        if node.d is oracle.shared_diagonal:  # the first time: start from a multiple of I
            d = np.where(free, max(0.9 * smallest_eigenvalue(h), 0.0), 0.0)
        inverse = np.empty_like(h)
        if not diagonal_kernels.positive_inverse(h - np.diag(d), inverse):
            return
        for step in sweeps:
            diagonal_kernels.raise_diagonal(inverse, d, free, step)
        d = np.maximum(d * (1 - 1e-9) - 4 * error, 0.0)
        if not diagonal_kernels.positive_inverse(h - np.diag(d + 2 * error), inverse):
            return
        whole = np.zeros(oracle.problem.columns)
        whole[columns] = d
        # Q is known to be semidefinite on these columns only, so b is 0 elsewhere.
        node.b[outside] = 0.0
        oracle.replace_diagonal(node, whole)


class CoreDiagonal(DiagonalRule):
    """A diagonal for the supports of each region, with b restricted to a core of few columns.

    Good where the other picks have little weight: d is almost all of their part of H, and b does
    not need their columns.
    """

    def __init__(self, oracle: QuadraticOracle) -> None:
        super().__init__(oracle)
        p = oracle.problem.columns
        count = min(oracle.problem.most_columns + _MORE_NEAREST, max(p - 1, 1))
        self._nearest = diagonal_kernels.nearest_columns(oracle.gram.products, p, count)
        self._failed = 0  # regions in a row in which the core did not help

    def evaluate_child(self, node: Node, parent: Node, rounds: int) -> Node:
        """The better of the inherited diagonal (or the shared one) and one for a core."""
        oracle = self._oracle
        if not len(node.core):
            oracle.use_shared_diagonal(node)
        oracle.evaluate(node, rounds)
        if node.exact_gains is not None or self._failed >= _MAX_FAILED_CORES:
            return node
        other = parent.inherited(node.region)
        if (
            self.restrict_to_core(other)
            and oracle.evaluate(other, rounds).lower_bound > node.lower_bound
        ):
            self._failed = 0
            return other
        self._failed += 1
        return node

    def restrict_to_core(self, node: Node) -> bool:
        """Restrict b to a core and raise d as far as the supports of the region allow.

        The core has the columns forced in and, in a mistake bucket, the anchor's. Returns False,
        with the node unchanged, if there is no such diagonal.
        """
        oracle, region = self._oracle, node.region
        gram, problem = oracle.gram, oracle.problem
        status = oracle.column_status(region)
        core = status == kernels.IN
        others = 0
        for pool, m in enumerate(region.picks):
            if region.sizes[pool] <= oracle.tuning.anchor * problem.k:
                core |= status == kernels.FREE + pool
            else:
                others += problem.layout.widest * m
        d = np.empty(problem.columns)
        for _ in range(_MAX_CORE_ROUNDS):
            columns = np.flatnonzero(core)
            size = float(gram.diagonal[columns].sum() + gram.diagonal.max()) / oracle.scale
            if len(columns) > _MAX_CORE or not diagonal_kernels.sparse_diagonal(
                gram.products, oracle.scale, *self._nearest, others,
                status, columns, 64 * (len(columns) + 4) * ROUNDING * size, d,
            ):  # fmt: skip
                return False
            negative = d < 0.0
            if not negative.any():
                break
            core |= negative  # too highly correlated with other columns to have a diagonal
        else:
            return False
        node.b[~core] = 0.0
        node.core = core
        # Rounded down: a smaller diagonal is valid.
        oracle.replace_diagonal(node, (d + problem.ridge) * (1.0 - 2.0**-52))
        return True


def raise_shared_diagonal(h: Array, d: Array, error: float) -> Array:
    """Raise an even diagonal d of H entry by entry; returns d if rounding prevents a proof."""
    factor, _ = dpotrf(h - np.diag(0.9 * d), lower=1)
    inverse, failed = dpotri(factor, lower=1)
    if failed:
        return d
    raised = 0.9 * d
    inverse = np.ascontiguousarray(np.tril(inverse) + np.tril(inverse, -1).T)
    every = np.ones(len(d), dtype=np.bool_)
    for step in _NEXT_SWEEPS:
        diagonal_kernels.raise_diagonal(inverse, raised, every, step)
    raised = np.maximum(raised * (1 - 1e-9) - 4 * error, 0.0)
    return d if dpotrf(h - np.diag(raised + 2 * error), lower=1)[1] else raised
