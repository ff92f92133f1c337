"""Contrary neighbours where choices have several columns, or every model an intercept.

The first choice is the contrary one. Its model is to predict -B, and those of all others +B, for
the same record: the response at one end then costs the contrary support the largest loss and the
others the least one, and at the other end it is the other way round. The intercept is in all of
these models, at opposite ends, so no record may pull it away from where it is.

Which records pin all coefficients at once is a linear program: the slopes of all objectives are
linear in how often each kind of record occurs, and a model is optimal where they point out of the
coefficient set. Where no table pins coefficients whose predictions are as large as B, the program
is solved for shorter ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import flint
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from ..objective.losses import loss_of
from ..objective.problem import Problem
from ..schema.layout import STEPS
from .rows import Records, is_plain, parts, placed

Floats = NDArray[np.float64]

#: Least pull on every coefficient, a record: against it one record moves nothing much.
_LEAST = 2e-3
#: Coefficients of the intercept, and of the second levels, as fractions of the largest ones.
_SHARES = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)
#: Kinks are rounded off this little, and are where the curvature is above this.
_FINE, _CURVED = flint.arb(2.0**30), 1e3


@dataclass(frozen=True)
class WorstCaseTable:
    """Records that pin coefficients, how many of each per thousand, and the largest prediction."""

    records: Records
    shares: Floats
    reached: float


@lru_cache(maxsize=64)
def worst_case_lp(problem: Problem) -> WorstCaseTable | None:
    """Return the table with the largest predictions; None with more than one choice a support.

    And none where choices are columns: it is known what pins those.
    """
    if problem.k != 1 or is_plain(problem.layout):
        return None
    kinds = _Kinds(problem)
    shares = [
        (intercept, second)
        for intercept in (_SHARES if problem.layout.has_intercept else (0.0,))
        for second in (_SHARES if problem.layout.grouped else (0.0,))
    ]
    models = [
        [_model(problem, j, intercept, second) for j in range(problem.p)]
        for intercept, second in shares
    ]
    prediction_bound = float(problem.prediction_bound)
    reached = [min(abs(float(kinds.ahead(j) @ b)) for j, b in enumerate(each)) for each in models]
    for i in sorted(range(len(models)), key=lambda i: -reached[i]):
        found = kinds.solve(models[i])
        if found is not None:
            return WorstCaseTable(kinds.records, found, reached[i] / prediction_bound)
    return None


def lp_pairs(problem: Problem, copies: int) -> Iterator[tuple[Records, Records, list[Records]]]:
    """Records, how often each occurs, and records that may be added or put in each other's place.

    The worst ones are the first two: every choice ahead, the response at either end.
    """
    found = worst_case_lp(problem)
    if found is None:
        return
    times = np.rint(found.shares * copies).astype(np.int64)
    ends = [
        placed(problem, [*[position] * problem.p, response])
        for position, response in itertools.product((STEPS, -STEPS), (STEPS, -STEPS))
    ]
    if loss_of(problem).labels:  # one step of the response is another label, too
        ends += [np.append(ends[0][:-1], response) for response in (-1, 0)]
    yield found.records[times > 0], times[times > 0], ends


def _model(problem: Problem, j: int, intercept: float, second: float) -> Floats:
    """Coefficients of choice j that predict far out where it is ahead; to -B for the first.

    In the order of its columns, the intercept's last.
    """
    layout = problem.layout
    numbers, levels = parts(layout, j)
    b = [1.0] * numbers
    if levels:
        b += [1.0, -second, *[0.0] * (levels - 2)] if levels > 1 else [1.0]
    if layout.has_intercept:
        b.append(
            intercept if problem.constraint == "box" else intercept * float(layout.intercept_value)
        )
    direction = np.array(b)
    norms = {
        "box": np.abs(direction).max(),
        "ball": np.linalg.norm(direction),
        "l1": np.abs(direction).sum(),
    }
    size = (-1.0 if j == 0 else 1.0) * problem.radius / float(norms[problem.constraint])
    return np.asarray(size * direction)


class _Kinds:
    """Kinds of records: where the contrary choice is, where all others are, the response."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._loss = problem, loss_of(problem)
        self._rows = None if self._loss.rows is None else self._loss.rows(problem.prediction_bound)
        steps = [-STEPS, 0, STEPS]
        numbers = [-STEPS, -STEPS // 2, 0, STEPS // 2, STEPS]
        own, other = (
            steps if any(parts(problem.layout, j)[1] for j in chosen) else numbers
            for chosen in (range(1), range(1, problem.p))
        )
        responses = [-STEPS, STEPS] if self._loss.labels else numbers
        self._listed = list(itertools.product(own, other, responses))
        self.records = np.array(
            [placed(problem, [a, *[b] * (problem.p - 1), y]) for a, b, y in self._listed]
        )

    def ahead(self, j: int) -> Floats:
        """The columns of choice j where it is ahead."""
        row = placed(self._problem, [STEPS] * (self._problem.p + 1))
        return np.asarray(self._columns(row[None], j)[0])

    def _columns(self, records: Records, j: int) -> Floats:
        return np.asarray(records[:, self._problem.layout.of_support([j])] / STEPS)

    def solve(self, models: Sequence[Floats]) -> Floats | None:
        """Shares of the kinds at which every model is pinned, and the contrary one is worst.

        Unknowns: the shares, the pull that all of them have in common, and for sets that are no
        box a multiplier for each model.
        """
        problem, count = self._problem, len(self.records)
        box, l1 = problem.constraint == "box", problem.constraint == "l1"
        width = count + 1 + (0 if box else len(models))
        above: list[Floats] = []  # each times the unknowns is at most 0
        equal: list[Floats] = []
        losses = []
        allowed = np.ones(count, dtype=np.bool_)  # at a kink a record pulls either way
        for j, b in enumerate(models):
            x = self._columns(self.records, j)
            value, slope, kink = self._at(x @ b)
            losses.append(value)
            allowed &= ~kink
            pull = -(x * slope[:, None]).T  # one row a column: towards larger coefficients
            for i, coefficient in enumerate(b):
                row = np.zeros(width)
                row[:count] = pull[i]
                inside = abs(coefficient) < problem.radius * (1 - 1e-9)
                sign = np.sign(coefficient)
                if box and inside:
                    equal.append(row)
                elif box:
                    row[:count] *= -sign
                    row[count] = 1.0
                    above.append(row)
                elif l1 and coefficient == 0:
                    # No steeper than those in use, and by a margin if there is one.
                    for side in (row, -row):
                        side = side.copy()
                        side[count], side[count + 1 + j] = 1.0, -1.0
                        above.append(side)
                else:
                    row[count + 1 + j] = -(sign if l1 else coefficient / problem.radius)
                    equal.append(row)
            if not box:  # the multiplier is at least the pull
                row = np.zeros(width)
                row[count], row[count + 1 + j] = 1.0, -1.0
                above.append(row)
        for value in losses[1:]:
            row = np.zeros(width)
            row[:count] = value - losses[0]
            row[count] = 1.0
            above.append(row)
        whole = np.zeros(width)
        whole[:count] = 1.0
        goal = np.zeros(width)
        goal[count] = -1.0
        found = linprog(
            goal, A_ub=np.array(above), b_ub=np.zeros(len(above)),
            A_eq=np.array([*equal, whole]), b_eq=np.append(np.zeros(len(equal)), 1.0),
            bounds=[*((0, 1 if one else 0) for one in allowed), *[(0, None)] * (width - count)],
            method="highs",
        )  # fmt: skip
        if not found.success or found.x[count] < _LEAST:
            return None
        return np.asarray(found.x[:count])

    def _at(self, predictions: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """The loss of each kind at its prediction, its slope there, and whether that is a kink."""
        y = self.records[:, -1] / STEPS
        if self._rows is None:
            return (y - predictions) ** 2, 2 * (predictions - y), np.zeros(len(y), dtype=np.bool_)
        turned = np.where(y < 0, -1.0, 1.0) if self._rows.labels else np.ones(len(y))
        found = np.array(
            [
                [float(part) for part in self._rows.exact(flint.arb(o), flint.arb(t), _FINE)]
                for o, t in zip(y.tolist(), (turned * predictions).tolist(), strict=True)
            ]
        )
        return found[:, 0], turned * found[:, 1], found[:, 2] > _CURVED
