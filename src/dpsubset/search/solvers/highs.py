"""Outer approximation on HiGHS: minimise eta over binary z above the cuts found so far.

The formulation is that of Prastakos, Behdin and Mazumder 2025.

Branch and cut in one tree: HiGHS solves the linear relaxations, and tangent planes are added at
their solutions, also at fractional ones (Kelley's method). HiGHS's own integer solver accepts no
cuts while it runs. Restarting it after each cut was faster where one or two restarts suffice, and
about a hundred times slower for the 20 best of 60 variables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.gram import GramData
from ...objective.problem import Problem
from ..engine import Limits, Support
from .certify import TOLERANCE_FACTOR, Relaxation, SolverError, chosen, limit_passed
from .cuts import planes

#: Feasibility tolerance of HiGHS.
TOLERANCE = 1e-9

#: Kelley's method stops when a cut raises the bound by less than this fraction of the gap, or after
#: so many cuts.
_MIN_PROGRESS, _MOST_CUTS = 0.1, 60

#: Entries of z this close to an integer count as integral.
_INTEGRALITY = 1e-7


class OuterApproximation(Relaxation):
    """Cuts on f(S) / scale, with scale a power of two, so that everything lies in [0, 1]."""

    package = "highspy"
    needs = "solver='highs' needs"

    @staticmethod
    def _module() -> Any:
        import highspy

        return highspy

    def __init__(self, gram: GramData, problem: Problem, limits: Limits) -> None:
        super().__init__(gram, problem, limits)
        self._planes = planes(gram, problem)
        self.scale = self._planes.scale
        self._forbidden: set[Support] = set()
        self._highs = self._model()

    @property
    def slack(self) -> float:
        """A bound on the effect of the tolerance on rows, bounds of variables and reduced costs.

        Rows of cuts have coefficient 1 at eta, so that their multipliers sum to 1, and at most 1 at
        every z, which range from 0 to 1.
        """
        return TOLERANCE_FACTOR * TOLERANCE * (2 + 2 * self._problem.p)

    def beyond(self, limit: float, without: Sequence[Support]) -> list[Support]:
        """Branch and cut until nothing is left below the limit; returns the supports found."""
        self._forbid(without)
        p = self._problem.p
        # With eta, the last column, below the limit, "infeasible" is a lower bound above the limit.
        self._highs.changeColBounds(p, 0.0, limit)
        low = np.zeros(p)
        low[list(self._problem.always_include)] = 1.0
        found: list[Support] = []
        nodes = [(low, np.ones(p))]
        while nodes:
            low, high = nodes.pop()
            if self._nodes >= self._limits.nodes:
                raise limit_passed("node")
            self._seconds_left()
            self._nodes += 1
            index = np.arange(p, dtype=np.int32)
            self._highs.changeColsBounds(p, index, low, high)
            z = self._solve_relaxation()
            while z is not None and _is_integral(z):
                # Its tangent plane has been added: f(S) itself does not exceed the limit.
                found.append(chosen(z, self._problem.k))
                if found[-1] in self._forbidden:
                    raise SolverError("HiGHS returned a support that a no-good cut forbids: it "
                                      "does not keep its tolerances on this problem")  # fmt: skip
                self._forbid(found[-1:])
                z = self._solve_relaxation()
            if z is not None:
                j = int(np.argmax(np.minimum(z, 1.0 - z)))
                for value in (0.0, 1.0):
                    nodes.append((low.copy(), high.copy()))
                    nodes[-1][0][j] = nodes[-1][1][j] = value
        return found

    def _solve_relaxation(self) -> NDArray[np.float64] | None:
        """Kelley's method on the linear relaxation: its z, or None if it is infeasible."""
        last = -math.inf
        for _ in range(_MOST_CUTS):
            z = self._solve()
            if z is None:
                return None
            bound = self._highs.getInfo().objective_function_value
            integral = _is_integral(z)
            gap = self._cut(np.round(z) if integral else z) - bound
            # An integral z remains only if its plane does not cut it off.
            if gap <= self.slack or (not integral and bound - last < _MIN_PROGRESS * gap):
                return z
            last = bound
        return z

    def _forbid(self, supports: Sequence[Support]) -> None:
        for support in supports:
            if support in self._forbidden:
                continue
            self._forbidden.add(support)
            self._row(-math.inf, self._problem.k - 1.0, support, np.ones(len(support)))

    def _solve(self) -> NDArray[np.float64] | None:
        """The best z of the linear relaxation, or None if it is infeasible."""
        highs, known = self._highs, self._solver.HighsModelStatus
        highs.run()
        status = highs.getModelStatus()
        if status == known.kInfeasible:
            return None
        if status != known.kOptimal:
            raise SolverError(f"HiGHS stopped without a proof: {highs.modelStatusToString(status)}")
        z: NDArray[np.float64] = np.array(highs.getSolution().col_value[:-1])
        return np.clip(z, 0.0, 1.0)

    def _model(self) -> Any:
        highs = self._solver.Highs()
        options = {
            "output_flag": False,
            "threads": 1,
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        }
        for name, value in options.items():
            highs.setOptionValue(name, value)
        p = self._problem.p
        for j in range(p):
            highs.addCol(0.0, float(j in self._problem.always_include), 1.0, 0, [], [])
        highs.addCol(1.0, 0.0, self._solver.kHighsInf, 0, [], [])  # eta
        self._highs = highs
        self._row(self._problem.k, self._problem.k, range(p), np.ones(p))
        return highs

    def _cut(self, z: NDArray[np.float64]) -> float:
        """Add the tangent plane at z; returns its value at z."""
        base, row = self._planes.row(z)
        if base > 0:  # otherwise eta >= 0 says more
            self._row(base, math.inf, range(self._problem.p + 1), np.append(row, 1.0))
        return base - float(row @ z)

    def _row(
        self, low: float, high: float, columns: Sequence[int], values: NDArray[np.float64]
    ) -> None:
        index = np.array(columns, dtype=np.int32)
        infinity = self._solver.kHighsInf
        self._highs.addRow(max(low, -infinity), min(high, infinity), len(index), index, values)


def _is_integral(z: NDArray[np.float64]) -> bool:
    return bool(np.all(np.minimum(z, 1.0 - z) <= _INTEGRALITY))
