"""Published formulations on external solvers, called by `top_supports`. NOT PRIVATE.

``highs``, ``gurobi``
    Outer approximation (Prastakos, Behdin and Mazumder 2025): binary z, cuts
    eta >= c(z0) + grad c(z0)'(z - z0). Every loss.
``scip``, ``gurobi-cones``
    The mixed-integer second order cone program (8) of Behdin, Prastakos and Mazumder 2024. Least
    squares.

They cross-check the engine and serve as benchmarks for it. No mechanism imports them, and no
release depends on their results.
"""

from __future__ import annotations

from fractions import Fraction

from ...base.errors import ArgumentError
from ...data.gram import GramData
from ...objective.problem import Problem
from ..best import Ranked
from ..engine import Limits
from . import gurobi, highs, scip
from .certify import Certified, Relaxation, SolverError

__all__ = ["SOLVERS", "SolverError", "check", "solve"]

SOLVERS: dict[str, type[Relaxation]] = {
    "highs": highs.OuterApproximation,
    "scip": scip.ConeProgram,
    "gurobi": gurobi.OuterApproximation,
    "gurobi-cones": gurobi.ConeProgram,
}

_CONES = ("scip", "gurobi-cones")


def check(solver: str, problem: Problem) -> None:
    """Raise an error, before a value is read, if a solver cannot be used for this problem."""
    if solver not in SOLVERS:
        raise ArgumentError(f"solver must be one of engine, {', '.join(SOLVERS)}")
    if solver in _CONES and problem.loss != "least-squares":
        raise ArgumentError(f"solver={solver!r} supports least squares only: the cone program is "
                            "quadratic. Use solver='highs', 'gurobi' or 'engine'")  # fmt: skip
    if problem.constraint not in ("box", "ball"):
        raise ArgumentError(
            f"solver={solver!r} supports the box and the ball only; use solver='engine'"
        )
    if solver not in _CONES and problem.constraint == "ball" and problem.ridge == 0:
        raise ArgumentError(
            "outer approximation over the ball divides by the ridge: set ridge > 0, or use "
            "solver='engine' or a cone program, 'scip' or 'gurobi-cones'"
        )
    SOLVERS[solver].check()


def solve(
    solver: str, gram: GramData, problem: Problem, score_step: Fraction, count: int, limits: Limits
) -> list[Ranked]:
    """The R best supports in order, in the form of `search.best.best_supports`."""
    check(solver, problem)
    relaxation = SOLVERS[solver](gram, problem, limits)
    return Certified(gram, problem, score_step, count, limits).find(relaxation)
