"""The cone program (8) of 000 on SCIP.

    min |y - Xb|^2 + ridge * sum of theta_j   over b, theta >= 0, binary z
    with b_j^2 <= theta_j z_j,  sum of theta_j <= r^2,  sum of z_j = k,

and a no-good cut for every support left out; with b'X'Xb as a sum of squares of p linear forms, one
variable each. For the box there are no cones but those of the ridge.

Solvers keep b_j^2 <= theta_j z_j to a tolerance, which lets every b_j with z_j = 0 be as large as
its root: with the cones alone SCIP's bound comes out about 1e-4 too low. The linear rows
|b_j| <= r z_j, which follow from (8), hold b_j to the tolerance itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..door import STEPS
from ..gram import Gram
from ..problem import Problem
from ..search.engine import Limits, Support
from .certify import CAUTION, SolverError, chosen, limit_passed, power_of_two

#: Feasibility tolerance asked of SCIP: with less, its linear programs can take minutes.
TOLERANCE = 1e-8

#: Of the eigenvalues of X'X, relatively to the largest.
_ROUNDING = 1e-13

#: With tolerances this tight SCIP could separate the cones at one node for a minute: better branch.
_OPTIONS = {
    "numerics/feastol": TOLERANCE,
    "numerics/dualfeastol": TOLERANCE,
    "limits/gap": 0.0,
    "limits/absgap": 0.0,
    "separating/maxroundsroot": 3,
    "separating/maxrounds": 3,
}


class ConeProgram:
    """(8) with its objective in units of a power of two."""

    def __init__(self, gram: Gram, problem: Problem, limits: Limits) -> None:
        self._scip: Any = _import()
        self._problem = problem
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds
        self._nodes = 0
        gram.fetch(range(gram.p))
        g = gram.columns[gram.slot][:, : gram.p] / float(STEPS) ** 2
        c, yy = gram.c / float(STEPS) ** 2, gram.yy / STEPS**2
        self.scale = power_of_two(yy)
        # b'Gb / scale = |Fb|^2.
        values, vectors = np.linalg.eigh(g / self.scale)
        self._forms = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        self._c, self._yy = c / self.scale, yy / self.scale
        self._norms = float(np.sqrt(np.diagonal(g) / self.scale).sum())

    @property
    def slack(self) -> float:
        """Every constraint may be off by the tolerance; what that can take off the objective.

        In this order: coefficients off their bounds, against a slope of at most 2 |x_j| |y|; the
        linear forms, of at most r times the sum of |x_j| in length; their squares and the reduced
        costs; the cones, in the ridge and in the ball, whose multiplier is at most yy / r^2; the
        rounding of the forms.
        """
        problem = self._problem
        p, r = problem.p, problem.radius
        cones = problem.k * problem.ridge / self.scale * (1 + r * r)
        ball = (p + 1) * (1 + r * r) / (r * r) if problem.constraint == "ball" else 0.0
        forms = 2 * math.sqrt(p) * (1 + r * self._norms)
        parts = 2 * (1 + r) * self._norms + forms + 2 * p + cones + ball
        rounding = _ROUNDING * p * (r * self._norms) ** 2
        return CAUTION * (TOLERANCE * parts + rounding)

    def beyond(self, limit: float, without: Sequence[Support]) -> list[Support]:
        """Solve (8) below the limit, with the supports ``without`` forbidden."""
        model, z = self._model(without)
        if math.isfinite(limit):
            model.setObjlimit(limit)
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise limit_passed("time")
        if math.isfinite(left):
            model.setParam("limits/time", left)
        if math.isfinite(self._limits.nodes):
            model.setParam("limits/totalnodes", max(1, int(self._limits.nodes) - self._nodes))
        model.optimize()
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

    def _model(self, without: Sequence[Support]) -> tuple[Any, list[Any]]:
        problem, quicksum = self._problem, self._scip.quicksum
        p, k, r = problem.p, problem.k, problem.radius
        model = self._scip.Model()
        model.hideOutput()
        model.setHeuristics(self._scip.SCIP_PARAMSETTING.OFF)  # good supports are known
        for name, value in _OPTIONS.items():
            model.setParam(name, value)
        z = [model.addVar(vtype="B", lb=float(j in problem.always_include)) for j in range(p)]
        b = [model.addVar(lb=-r, ub=r) for _ in range(p)]
        for j in range(p):
            model.addCons(b[j] <= r * z[j])
            model.addCons(b[j] >= -r * z[j])
        model.addCons(quicksum(z) == k)
        for support in without:
            model.addCons(quicksum(z[j] for j in support) <= k - 1)
        cost = [-2.0 * float(c) * x for c, x in zip(self._c, b, strict=True)]
        if problem.constraint == "ball" or problem.ridge > 0:
            theta = [model.addVar(lb=0.0, ub=r * r) for _ in range(p)]
            for j in range(p):
                model.addCons(b[j] * b[j] <= theta[j] * z[j])
            if problem.constraint == "ball":
                model.addCons(quicksum(theta) <= r * r)
            cost += [problem.ridge / self.scale * t for t in theta]
        for form in self._forms:
            u, square = model.addVar(lb=None), model.addVar(lb=0.0)
            model.addCons(quicksum(float(f) * x for f, x in zip(form, b, strict=True)) == u)
            model.addCons(u * u <= square)
            cost.append(square)
        model.setObjective(quicksum(cost) + self._yy)
        return model, z


def _import() -> Any:
    try:
        import pyscipopt
    except ImportError:
        raise SolverError("solver='scip' needs the package pyscipopt: pip install "
                          "'dpsubset[solvers]'") from None  # fmt: skip
    return pyscipopt
