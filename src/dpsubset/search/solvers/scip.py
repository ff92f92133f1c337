"""The cone program of `cones` on SCIP: one variable for each linear form and one for its square."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...data.gram import GramData
from ...objective.problem import Problem
from ..engine import Limits, Support
from .certify import Relaxation, SolverError, chosen, limit_passed
from .cones import Cones
from .quiet import silent_stderr

#: Feasibility tolerance of SCIP: with a smaller one, its linear programs can take minutes.
TOLERANCE = 1e-8

#: With tolerances this tight SCIP could separate the cones at one node for a minute; branching is
#: faster.
_OPTIONS = {
    "numerics/feastol": TOLERANCE,
    "numerics/dualfeastol": TOLERANCE,
    "limits/gap": 0.0,
    "limits/absgap": 0.0,
    "separating/maxroundsroot": 3,
    "separating/maxrounds": 3,
}


class ConeProgram(Relaxation):
    """The cone program (8), solved anew for every limit."""

    package = "pyscipopt"
    needs = "solver='scip' needs"

    @staticmethod
    def _module() -> Any:
        import pyscipopt

        return pyscipopt

    def __init__(self, gram: GramData, problem: Problem, limits: Limits) -> None:
        super().__init__(gram, problem, limits)
        self._cones = Cones(gram, problem)
        self.scale = self._cones.scale

    @property
    def slack(self) -> float:
        return self._cones.slack(TOLERANCE)

    def beyond(self, limit: float, without: Sequence[Support]) -> list[Support]:
        """Solve (8) below the limit, with the supports ``without`` excluded."""
        model, z = self._model(without)
        if math.isfinite(limit):
            model.setObjlimit(limit)
        left = self._seconds_left()
        if math.isfinite(left):
            model.setParam("limits/time", left)
        if math.isfinite(self._limits.nodes):
            model.setParam("limits/totalnodes", max(1, int(self._limits.nodes) - self._nodes))
        self._optimize(model)
        self._nodes += model.getNTotalNodes()
        status = model.getStatus()
        if status == "infeasible":
            return []
        if status == "timelimit":
            raise limit_passed("time")
        if status in ("nodelimit", "totalnodelimit"):
            raise limit_passed("node")
        if status != "optimal":
            raise SolverError(f"SCIP stopped without a proof: {status}")
        found = [chosen([sol[v] for v in z], self._problem.k) for sol in model.getSols()]
        return sorted(set(found))

    @staticmethod
    def _optimize(model: Any) -> None:
        failed = False
        try:
            with silent_stderr():
                model.optimize()
        except Exception:  # SCIP's own message may be about the data
            failed = True
        if failed:
            raise SolverError("SCIP failed on this problem: use solver='engine'")

    def _model(self, without: Sequence[Support]) -> tuple[Any, list[Any]]:
        problem, cones, quicksum = self._problem, self._cones, self._solver.quicksum
        p, k, r = problem.p, problem.k, problem.radius
        model = self._solver.Model()
        model.hideOutput()
        model.setHeuristics(self._solver.SCIP_PARAMSETTING.OFF)  # good supports are known already
        for name, value in _OPTIONS.items():
            model.setParam(name, value)
        z = [model.addVar(vtype="B", lb=float(j in problem.always_include)) for j in range(p)]
        on = cones.on(z)
        b = [model.addVar(lb=-r, ub=r) for _ in on]
        for x, switch in zip(b, on, strict=True):
            model.addCons(x <= r * switch)
            model.addCons(x >= -r * switch)
        model.addCons(quicksum(z) == k)
        for support in without:
            model.addCons(quicksum(z[j] for j in support) <= k - 1)
        cost = [-2.0 * float(c) * x for c, x in zip(cones.c, b, strict=True)]
        if problem.constraint == "ball" or problem.ridge > 0:
            theta = [model.addVar(lb=0.0, ub=r * r) for _ in on]
            for x, t, switch in zip(b, theta, on, strict=True):
                model.addCons(x * x <= t * switch)
            if problem.constraint == "ball":
                model.addCons(quicksum(theta) <= r * r)
            cost += [cones.ridge * t for t in theta]
        for form in cones.forms:
            u, square = model.addVar(lb=None), model.addVar(lb=0.0)
            model.addCons(quicksum(float(f) * x for f, x in zip(form, b, strict=True)) == u)
            model.addCons(u * u <= square)
            cost.append(square)
        model.setObjective(quicksum(cost) + cones.yy)
        return model, z
