"""Outer approximation of 001 on HiGHS: minimise eta over binary z above the cuts found so far.

Tangent planes are first taken along the continuous relaxation (Kelley's method), then at what the
integer program returns. HiGHS takes no cuts while it runs, so it starts anew after each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..door import STEPS
from ..gram import Gram
from ..problem import Problem
from ..search.engine import Limits, Support
from .certify import CAUTION, TOLERANCE, SolverError, chosen, limit_passed, power_of_two
from .cuts import Cuts

#: HiGHS takes smaller coefficients for 0; they are rounded up to this.
_LEAST = 1e-8

#: Kelley's method stops when a cut raises the bound by less than this share of what is missing, or
#: after so many.
_STALL, _MOST_CUTS = 0.01, 60


class OuterApproximation:
    """Cuts on f(S) / scale, a power of two, so that everything lies in [0, 1]."""

    def __init__(self, gram: Gram, problem: Problem, limits: Limits) -> None:
        self._highspy: Any = _import()
        self.scale = power_of_two(gram.yy / STEPS**2)
        self._problem = problem
        self._cuts = Cuts(gram, problem)
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds
        self._nodes = 0
        self._forbidden: set[Support] = set()
        self._widest = 0.0
        self._highs = self._model()
        self._cut(np.full(problem.p, problem.k / problem.p))

    @property
    def slack(self) -> float:
        """A row, or a bound of a variable, may be off by the tolerance, and so may reduced costs.

        Rows of cuts have coefficient 1 at eta, so that their multipliers sum to 1: being off moves
        the bound by the tolerance, times the coefficients of the z that are off with it.
        """
        return CAUTION * TOLERANCE * (2.0 + self._problem.p + self._widest)

    def beyond(self, limit: float, without: Sequence[Support]) -> list[Support]:
        """Add cuts until no support but those ``without`` is left, or HiGHS returns one."""
        for support in without:
            if support not in self._forbidden:
                self._forbidden.add(support)
                self._row(-math.inf, self._problem.k - 1.0, support, np.ones(len(support)))
        # The last column is eta. HiGHS then says "infeasible" where it need not find an optimum.
        self._highs.changeColBounds(self._problem.p, 0.0, min(limit, self._highspy.kHighsInf))
        if not self._relax():
            return []
        z = self._solve(integer=True)
        if z is None:
            return []
        self._cut(np.where(z > 0.5, 1.0, 0.0))
        return [chosen(z, self._problem.k)]

    def _relax(self) -> bool:
        """Kelley's method on the continuous relaxation; False if nothing is left of it."""
        last = -math.inf
        for _ in range(_MOST_CUTS):
            z = self._solve(integer=False)
            if z is None:
                return False
            bound = self._highs.getInfo().objective_function_value
            base, gains = self._cut(z)
            missing = base - float(gains @ z) - bound
            if missing <= TOLERANCE or (bound - last < _STALL * missing and bound > last):
                break
            last = bound
        return True

    def _solve(self, integer: bool) -> NDArray[np.float64] | None:
        """The best z, or None if none is left."""
        highs, kinds = self._highs, self._highspy.HighsVarType
        p = self._problem.p
        kind = kinds.kInteger if integer else kinds.kContinuous
        highs.changeColsIntegrality(p, np.arange(p, dtype=np.int32), np.full(p, int(kind), np.uint8))
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise limit_passed("time")
        if math.isfinite(left):
            highs.setOptionValue("time_limit", highs.getRunTime() + left)
        if math.isfinite(self._limits.nodes):
            highs.setOptionValue("mip_max_nodes", max(0, int(self._limits.nodes) - self._nodes))
        highs.run()
        status, known = highs.getModelStatus(), self._highspy.HighsModelStatus
        self._nodes += max(0, highs.getInfo().mip_node_count) if integer else 0
        if status == known.kInfeasible:
            return None
        if status == known.kTimeLimit:
            raise limit_passed("time")
        if status == known.kSolutionLimit:
            raise limit_passed("node")
        if status != known.kOptimal:
            raise SolverError(f"HiGHS stopped without a proof: {highs.modelStatusToString(status)}")
        return np.clip(np.array(highs.getSolution().col_value[:p]), 0.0, 1.0)

    def _model(self) -> Any:
        highs = self._highspy.Highs()
        options = {
            "output_flag": False,
            "threads": 1,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": TOLERANCE,
            "mip_feasibility_tolerance": TOLERANCE,
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        }
        for name, value in options.items():
            highs.setOptionValue(name, value)
        p = self._problem.p
        for j in range(p):
            highs.addCol(0.0, float(j in self._problem.always_include), 1.0, 0, [], [])
        highs.addCol(1.0, 0.0, self._highspy.kHighsInf, 0, [], [])  # eta
        self._highs = highs
        self._row(self._problem.k, self._problem.k, range(p), np.ones(p))
        return highs

    def _cut(self, z: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        base, gains = self._cuts.at(z)
        base, gains = base / self.scale, gains / self.scale
        if base > 0:  # otherwise eta >= 0 says more
            # With z_j = 1 and a gain beyond the base, the row says no more than eta >= 0.
            row = np.clip(gains, _LEAST, max(base, _LEAST))
            self._widest = max(self._widest, float(row.sum()))
            self._row(base, math.inf, range(self._problem.p + 1), np.append(row, 1.0))
        return base, gains

    def _row(
        self, low: float, high: float, columns: Sequence[int], values: NDArray[np.float64]
    ) -> None:
        index = np.array(columns, dtype=np.int32)
        infinity = self._highspy.kHighsInf
        self._highs.addRow(max(low, -infinity), min(high, infinity), len(index), index, values)


def _import() -> Any:
    try:
        import highspy
    except ImportError:
        raise SolverError("solver='highs' needs the package highspy: pip install "
                          "'dpsubset[solvers]'") from None  # fmt: skip
    return highspy
