"""Quantized rows for any layout, from which the neighbouring tables of an audit are built.

A layout says how many columns a choice has and how wide it is, not what they are. Here a choice as
wide as it has columns is a group of numbers, and any other has numbers for all but one of its
width, and levels for the rest: one of them is 1 in a row, or none. No row of another choice with
these columns and this width is further out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..objective.problem import Problem
from ..schema.layout import STEPS, Layout

#: Quantized records, one a row: the columns of the model, then the response; |q| <= STEPS.
Records = NDArray[np.int64]


def is_plain(layout: Layout) -> bool:
    """Whether choices are columns."""
    return not layout.grouped and not layout.has_intercept


def parts(layout: Layout, j: int) -> tuple[int, int]:
    """Of a choice: how many numbers, and how many levels behind them."""
    if not layout.grouped:
        return 1, 0
    size, width = layout.sizes[j], layout.widths[j]
    return (size, 0) if size == width else (width - 1, size - width + 1)


def cells(layout: Layout, j: int, position: int) -> list[int]:
    """The columns of a choice at a position, in steps of the quantizer.

    Numbers are all there; above 0 the first level is on, below it the second, and at 0 none.
    """
    numbers, levels = parts(layout, j)
    on = [0] * levels
    if levels and position:
        on[0 if position > 0 else 1] = STEPS
    return [position] * numbers + on


def placed(problem: Problem, positions: Sequence[int] | Records) -> Records:
    """The row of choices at these positions, with the response last; with the intercept's column.

    The rows themselves where choices are columns.
    """
    layout, values = problem.layout, [int(q) for q in positions]
    if is_plain(layout):
        return np.array(values, dtype=np.int64)
    row = [q for j in range(layout.choices) for q in cells(layout, j, values[j])]
    row += [layout.constant] if layout.has_intercept else []
    return np.array([*row, values[-1]], dtype=np.int64)


def random_rows(problem: Problem, n: int, rng: np.random.Generator, *, corners: bool) -> Records:
    """Rows of numbers anywhere or at their ends, and of levels; the response likewise."""
    layout = problem.layout
    if is_plain(layout):
        return _numbers(layout.choices, n, rng, corners)
    rows = []
    for j in range(layout.choices):
        numbers, levels = parts(layout, j)
        rows.append(_numbers(numbers, n, rng, corners)[:, :-1])
        on = rng.integers(-1, levels, size=n)  # -1: none of them
        rows.append(np.where(np.arange(levels) == on[:, None], STEPS, 0))
    if layout.has_intercept:
        rows.append(np.full((n, 1), layout.constant))
    return np.hstack([*rows, _numbers(0, n, rng, corners)]).astype(np.int64)


def _numbers(p: int, n: int, rng: np.random.Generator, corners: bool) -> Records:
    """p columns and a response."""
    if corners:
        records = STEPS * rng.integers(-1, 2, size=(n, p + 1))
        records[:, -1] = STEPS * (2 * rng.integers(0, 2, size=n) - 1)
    else:
        records = rng.integers(-STEPS, STEPS + 1, size=(n, p + 1))
    return np.asarray(records, dtype=np.int64)
