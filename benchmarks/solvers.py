"""The engine beside published formulations on outside solvers: the optimum after X'X.

Both sides start from the same moments and are timed alike. The adapters of `search.solvers`
are helped as far as that is fair: good supports are found for them by swaps, so that what is timed
is the proof; cuts are tightened by the least eigenvalue of X'X, and outer approximation runs in one
tree. Rows "as published" have none of this: they are the loop of Prastakos, Behdin and Mazumder
2025 on HiGHS's own integer solver.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpsubset.data.gram import GramData
from dpsubset.objective.losses import scorer
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.search.best import Ranked, best_supports
from dpsubset.search.engine import Engine, Limits, SearchLimitError, Support
from dpsubset.search.solvers import SolverError, solve
from dpsubset.search.solvers.cuts import Cuts

from . import ours
from .data import SETTINGS, Shape
from .rows import Row, clock

PUBLISHED = "highs as published"

NAMES = {
    "highs": "HiGHS, outer approximation",
    PUBLISHED: "HiGHS, outer approximation as published",
    "scip": "SCIP, cone program",
    "gurobi": "Gurobi, outer approximation",
    "gurobi-cones": "Gurobi, cone program",
}

CASES = (
    ("highs", Shape(3000, 100)),
    (PUBLISHED, Shape(3000, 100)),
    ("gurobi", Shape(3000, 100)),
    ("highs", Shape(3000, 1000)),
    (PUBLISHED, Shape(3000, 1000)),
    ("gurobi", Shape(3000, 1000)),
    ("scip", Shape(3000, 50)),
    ("gurobi-cones", Shape(3000, 50)),
)

#: Most that engine time over solver time may be.
_GOAL = 1 / 50

#: Where the published loop stops, relatively: what integer solvers take for optimal.
_GAP = 1e-4


def rows(
    bar: str, repeats: int, limit: float, cases: tuple[tuple[str, Shape], ...] = CASES
) -> Iterator[Row]:
    """One row a case."""
    for solver, shape in cases:
        yield _row(bar, solver, shape, repeats, limit, SETTINGS["ball"])


def _row(
    bar: str, solver: str, shape: Shape, repeats: int, limit: float, setting: dict[str, Any]
) -> Row:
    x, y = shape.make()
    case = f"{shape}, ball, ridge {setting['ridge']:g}: after X'X"
    digest, problem = ours.read(x, y, shape.k, **setting)
    unit, limits = Sensitivity.of(problem).score_step, Limits(seconds=limit)
    search, mine = _timed(
        lambda: best_supports(Engine(digest, problem, unit, math.inf, limits), 1), 2 * repeats
    )
    note = ""
    try:
        if solver == PUBLISHED:
            loop = Published(digest, problem, limit)
            seconds, theirs = _timed(loop.solve, repeats)
            note = f", {loop.rounds} integer programs"
        else:
            seconds, theirs = _timed(
                lambda: solve(solver, digest, problem, unit, 1, limits), repeats
            )
    except SearchLimitError:
        note = f"not finished in {limit:g} s, a lower bound"
        return Row(bar, case, search, "s", limit, NAMES[solver], _GOAL, "ratio", note=note)
    except SolverError as error:
        return Row(bar, case, search, against=NAMES[solver], note=str(error))
    apart = abs(theirs[0][0] - mine[0][0]) / max(1, mine[0][0])
    same = theirs[0][1] == mine[0][1]
    note = ("same support" if same else "ANOTHER SUPPORT") + note
    return Row(
        bar, case, search, "s", seconds, NAMES[solver], _GOAL, "ratio",
        failed=not same or apart > 1e-9, note=f"{note}, optima {apart:.0e} apart",
    )  # fmt: skip


def _timed(task: Callable[[], list[Ranked]], repeats: int) -> tuple[float, list[Ranked]]:
    """Median seconds and the answer; the first run loads what there is to load."""
    timed = [clock(task) for _ in range(repeats + 1)]
    return statistics.median(seconds for seconds, _ in timed[1:]), timed[-1][1]


class Published:
    """Solve the integer program, add the cut at its solution, repeat until bound meets value."""

    def __init__(self, digest: GramData, problem: Problem, seconds: float) -> None:
        self._problem, self._seconds = problem, seconds
        self._cuts = Cuts(digest, problem, shift=False)
        self._scorer = scorer(digest, problem, Sensitivity.of(problem).score_step)
        self.rounds = 0

    def solve(self) -> list[Ranked]:
        """The best support, from a cold start."""
        deadline = time.monotonic() + self._seconds
        highs, p = self._model(), self._problem.p
        found: list[Ranked] = []
        cut: set[Support] = set()
        self.rounds = 0
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise SearchLimitError("not finished")
            highs.setOptionValue("time_limit", highs.getRunTime() + left)
            highs.run()
            self.rounds += 1
            info, z = highs.getInfo(), np.rint(highs.getSolution().col_value[:p])
            support = np.flatnonzero(z)
            if len(support) != self._problem.k:  # stopped by the limit without any
                continue
            score = int(self._scorer.scores(support[None])[0])
            found = sorted([*found, (score, tuple(support.tolist()))])[:1]
            value = found[0][0] * self._scorer.score_step_float / self._cuts.scale
            known = tuple(support.tolist()) in cut
            if known or value - info.mip_dual_bound <= _GAP * value:
                # A support whose cut is in: the bound is its value, to HiGHS's tolerances.
                return found
            cut.add(tuple(support.tolist()))
            base, row = self._cuts.row(z)
            index = np.arange(p + 1, dtype=np.int32)
            highs.addRow(base, np.inf, p + 1, index, np.append(row, 1.0))

    def _model(self) -> Any:
        try:
            import highspy
        except ImportError:
            raise SolverError("highspy is not installed") from None
        highs, p = highspy.Highs(), self._problem.p
        highs.setOptionValue("output_flag", False)
        highs.addVars(p + 1, np.zeros(p + 1), np.append(np.ones(p), np.inf))
        for j in range(p):
            highs.changeColIntegrality(j, highspy.HighsVarType.kInteger)
        highs.changeColCost(p, 1.0)
        index = np.arange(p, dtype=np.int32)
        highs.addRow(self._problem.k, self._problem.k, p, index, np.ones(p))
        return highs
