"""The published formulations on Gurobi, if there is a licence.

Outer approximation (Prastakos, Behdin and Mazumder 2025) in one tree: tangent planes are added
lazily, at integral z and at fractional ones. The cone program (8) of Behdin, Prastakos and Mazumder
2024, with X'X in one quadratic row.

Nothing is logged, to a console or to a file. With the licence of a compute server the model, which
is computed from the table, is solved on that server.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.gram import GramData
from ...objective.problem import Problem
from ..engine import Limits, Support
from .certify import TOLERANCE_FACTOR, Relaxation, SolverError, chosen, limit_passed
from .cones import Cones
from .cuts import planes

#: Tolerance of Gurobi, the smallest that it accepts.
TOLERANCE = 1e-9

#: Set before the start, to suppress the banner. A file gurobi.env may have set some of the others.
_NO_OUTPUT = {"OutputFlag": 0, "LogToConsole": 0, "LogFile": ""}
_OPTIONS = {
    **_NO_OUTPUT,
    "Record": 0,
    "ResultFile": "",
    "SolFiles": "",
    "Threads": 1,
    "FeasibilityTol": TOLERANCE,
    "OptimalityTol": TOLERANCE,
    "IntFeasTol": TOLERANCE,
    "MIPGap": 0.0,
    "MIPGapAbs": 0.0,
}

#: A plane at a fractional z is added if it raises the bound by this fraction of the limit.
_MIN_IMPROVEMENT = 1e-4

_TOO_LARGE = 10010


class _Tree(Relaxation):
    """A model for Gurobi: what both formulations share."""

    package, extra = "gurobipy", "gurobi"
    needs = "solver='gurobi' and 'gurobi-cones' need"

    @staticmethod
    def _module() -> Any:
        import gurobipy

        return gurobipy

    @classmethod
    def check(cls) -> None:
        _start(cls._import()).dispose()

    def beyond(self, limit: float, without: Sequence[Support]) -> list[Support]:
        """Solve the formulation below the limit, with the supports ``without`` excluded."""
        try:
            with (
                _start(self._solver) as environment,
                self._solver.Model(env=environment) as model,
            ):
                return self._solve(model, self._add_binaries(model, without), limit)
        except self._solver.GurobiError as error:
            code = error.errno
        # Gurobi's own message may be about the data.
        if code == _TOO_LARGE:
            raise SolverError("this problem is larger than Gurobi's size-limited licence allows: "
                              "use a full licence, or solver='engine'")  # fmt: skip
        raise SolverError(f"Gurobi failed on this problem with its error {code}")

    @abstractmethod
    def _solve(self, model: Any, z: list[Any], limit: float) -> list[Support]:
        """Supports that may lie below the limit."""

    def _add_binaries(self, model: Any, without: Sequence[Support]) -> list[Any]:
        """Add binary z and the no-good cuts; returns z."""
        problem, quicksum = self._problem, self._solver.quicksum
        for name, value in _OPTIONS.items():
            model.setParam(name, value)
        low = [float(j in problem.always_include) for j in range(problem.p)]
        z: list[Any] = model.addMVar(problem.p, lb=low, vtype="B").tolist()
        model.addConstr(quicksum(z) == problem.k)
        for support in without:
            model.addConstr(quicksum(z[j] for j in support) <= problem.k - 1)
        return z

    def _run(self, model: Any, callback: _Callback | None = None) -> bool:
        """Optimise; returns whether a solution below the limit was found."""
        left = self._seconds_left()
        if math.isfinite(left):
            model.setParam("TimeLimit", left)
        if math.isfinite(self._limits.nodes):
            model.setParam("NodeLimit", max(0.0, self._limits.nodes - self._nodes))
        model.optimize(callback)
        if callback and callback.raised:
            raise callback.raised
        self._nodes += max(1, int(model.NodeCount))
        codes, status = self._solver.GRB, model.Status
        if status in (codes.INFEASIBLE, codes.CUTOFF):
            return False
        if status == codes.TIME_LIMIT:
            raise limit_passed("time")
        if status == codes.NODE_LIMIT:
            raise limit_passed("node")
        # The solution need not be the best, because it is scored: only "none" must be proved.
        if status not in (codes.OPTIMAL, codes.SUBOPTIMAL):
            raise SolverError(f"Gurobi stopped without a proof: status {status}")
        return True


class OuterApproximation(_Tree):
    """Cuts on f(S) / scale, with scale a power of two, so that everything lies in [0, 1]."""

    def __init__(self, gram: GramData, problem: Problem, limits: Limits) -> None:
        super().__init__(gram, problem, limits)
        self._planes = planes(gram, problem)
        self.scale = self._planes.scale
        self._rows: list[tuple[float, NDArray[np.float64]]] = []

    @property
    def slack(self) -> float:
        """As for HiGHS; in addition z may be off integers by the tolerance."""
        return TOLERANCE_FACTOR * TOLERANCE * (2 + 3 * self._problem.p)

    def _solve(self, model: Any, z: list[Any], limit: float) -> list[Support]:
        """Branch and cut until nothing is left below the limit; returns the supports found."""
        # With eta below the limit, "infeasible" is a lower bound above the limit.
        eta = model.addVar(ub=limit)
        model.setObjective(eta)
        model.setParam("LazyConstraints", 1)
        for base, row in self._rows:
            model.addConstr(self._row_expression(row, z, eta) >= base)
        found: list[Support] = []

        def whole(model: Any) -> None:
            support = chosen(model.cbGetSolution(z), self._problem.k)
            at = np.zeros(self._problem.p)
            at[list(support)] = 1.0
            if self._cut(model, at, z, eta) <= limit + self.slack:
                # Its own tangent plane does not rule it out.
                found.append(support)
                picked = self._solver.quicksum(z[j] for j in support)
                model.cbLazy(picked <= self._problem.k - 1)

        def fractional(model: Any) -> None:
            *at, bound = model.cbGetNodeRel([*z, eta])
            self._cut(model, np.clip(at, 0.0, 1.0), z, eta, worth=bound + _MIN_IMPROVEMENT * limit)

        if self._run(model, _Callback(self._solver, whole, fractional)):
            found.append(chosen([v.X for v in z], self._problem.k))
        return sorted(set(found))

    def _cut(
        self, model: Any, at: NDArray[np.float64], z: list[Any], eta: Any, worth: float = -math.inf
    ) -> float:
        """Add the tangent plane at a point if its value there exceeds ``worth``; the value."""
        base, row = self._planes.row(at)
        value = base - float(row @ at)
        if value > worth:
            # Kept for later limits.
            self._rows.append((base, row))
            model.cbLazy(self._row_expression(row, z, eta) >= base)
        return value

    def _row_expression(self, row: NDArray[np.float64], z: list[Any], eta: Any) -> Any:
        return self._solver.LinExpr([*row.tolist(), 1.0], [*z, eta])


class ConeProgram(_Tree):
    """The cone program (8), solved anew for every limit."""

    def __init__(self, gram: GramData, problem: Problem, limits: Limits) -> None:
        super().__init__(gram, problem, limits)
        self._cones = Cones(gram, problem)
        self.scale = self._cones.scale

    @property
    def slack(self) -> float:
        return self._cones.slack(TOLERANCE)

    def _solve(self, model: Any, z: list[Any], limit: float) -> list[Support]:
        cones, problem, quicksum = self._cones, self._problem, self._solver.quicksum
        on, r = cones.on(z), problem.radius
        # Linear relaxations, which keep the requested tolerances.
        model.setParam("MIQCPMethod", 1)
        model.setParam("Cutoff", limit)
        matrix = model.addMVar(len(on), lb=-r, ub=r)
        b, square = matrix.tolist(), model.addVar()
        model.addConstr(matrix @ cones.g @ matrix <= square)
        cost = square - 2.0 * self._solver.LinExpr(cones.c.tolist(), b) + cones.yy
        for x, switch in zip(b, on, strict=True):
            model.addConstr(x <= r * switch)
            model.addConstr(x >= -r * switch)
        if problem.constraint == "ball" or problem.ridge > 0:
            theta = model.addMVar(len(on), ub=r * r).tolist()
            for x, t, switch in zip(b, theta, on, strict=True):
                model.addConstr(x * x <= t * switch)
            if problem.constraint == "ball":
                model.addConstr(quicksum(theta) <= r * r)
            cost += cones.ridge * quicksum(theta)
        model.setObjective(cost)
        return [chosen([v.X for v in z], problem.k)] if self._run(model) else []


class _Callback:
    """Calls for integral and for fractional z; keeps an exception for later.

    gurobipy prints what a callback raises and continues.
    """

    def __init__(
        self, gurobi: Any, whole: Callable[[Any], None], fractional: Callable[[Any], None]
    ) -> None:
        self._codes, self._whole, self._fractional = gurobi.GRB, whole, fractional
        self.raised: BaseException | None = None

    def __call__(self, model: Any, where: int) -> None:
        """Called by Gurobi."""
        at, status = self._codes.Callback, self._codes.OPTIMAL
        try:
            if where == at.MIPSOL:
                self._whole(model)
            elif where == at.MIPNODE and model.cbGet(at.MIPNODE_STATUS) == status:
                self._fractional(model)
        except BaseException as error:
            self.raised = error
            model.terminate()


def _start(gurobi: Any) -> Any:
    """An environment, which holds the licence until it is disposed of."""
    environment = gurobi.Env(empty=True)
    try:
        for name, value in _NO_OUTPUT.items():
            environment.setParam(name, value)
        environment.start()
        return environment
    except gurobi.GurobiError:
        environment.dispose()
    raise SolverError(
        "Gurobi finds no valid licence: see gurobi.com, or install the newest gurobipy, which "
        "includes one for small problems: pip install -U 'dpsubset[gurobi]'"
    )
