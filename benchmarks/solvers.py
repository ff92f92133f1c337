"""The engine beside the papers' formulations on outside solvers: the optimum after X'X.

Both sides start from the same moments. The solvers are helped as far as that is fair: good supports
are found for them by swaps, so that what is timed is the proof.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from dpsubset.search.engine import Limits
from dpsubset.sensitivity import Sensitivity
from dpsubset.solvers import SolverError, solve

from . import ours
from .data import SETTINGS, Shape
from .rows import Row, clock

NAMES = {"highs": "HiGHS, outer approximation", "scip": "SCIP, cone program"}

CASES = (
    ("highs", Shape(3000, 100)),
    ("highs", Shape(3000, 1000)),
    ("scip", Shape(3000, 50)),
)

#: Most that engine time over solver time may be.
_GOAL = 1 / 50


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
    runs = [ours.best(x, y, shape.k, 1, **setting) for _ in range(2 * repeats + 1)]
    search = statistics.median(run.search for run in runs)
    taken = ours.intake(x, y, shape.k, **setting)
    gram, unit = taken.read(taken.open()), Sensitivity.of(taken.problem).unit
    try:
        timed = [
            clock(lambda: solve(solver, gram, taken.problem, unit, 1, Limits(seconds=limit)))
            for _ in range(repeats + 1)  # the first one loads the solver
        ]
    except SolverError as error:
        return Row(bar, case, search, against=NAMES[solver], note=str(error))
    theirs, mine = timed[-1][1][0], runs[0].found[0]
    apart = abs(theirs[0] - mine[0]) / max(1, mine[0])
    same = theirs[1] == mine[1]
    note = "same support" if same else "ANOTHER SUPPORT"
    return Row(
        bar, case, search, "s", statistics.median(seconds for seconds, _ in timed[1:]),
        NAMES[solver], _GOAL, "ratio", failed=not same or apart > 1e-9,
        note=f"{note}, optima {apart:.0e} apart, both certified",
    )  # fmt: skip
