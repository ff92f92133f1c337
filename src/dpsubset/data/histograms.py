"""Columns by themselves: how many records have each value of a column, behind the door.

What `response` does for a response, for any columns with bounds, in one pass over the table: the
integers that the door makes of cells are counted, bad cells are not. A record counts once in each
histogram at most, by its own cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..privacy.quantiles import histogram
from ..schema.schema import Column, Missing, Schema
from .moments import check_n
from .quantize import STEPS
from .readers import Table
from .readers.passes import Passes, over
from .response import ResponseDoor


def alone(column: Column) -> Column:
    """A column with bounds as it is read for itself: no role, no group, no column beside it."""
    missing = column.missing
    if missing is not None and missing.rule in ("indicator", "drop"):
        missing = Missing(missing.codes)
    return replace(column, role="feature", group=None, missing=missing)


def reading(columns: Sequence[Column], beside: Column) -> Schema:
    """What makes a source read these columns, the last one as a response.

    ``beside`` is another column of the table, for a schema has two at least; it is not counted.
    """
    *others, last = map(alone, columns)
    return Schema(tuple(others) or (beside,), last)


def count_columns(
    table: Table, columns: Sequence[Column], passes: Passes | None = None
) -> tuple[list[NDArray[np.int64]], int]:
    """The histogram of each column, in order, and the number of records. All of it is private.

    Parameters
    ----------
    table : Table
        Opened with the schema of `reading` these columns.
    """
    doors = [ResponseDoor(reading([column], _BESIDE)) for column in columns]
    counts = [np.zeros(2 * STEPS + 1, dtype=np.int64) for _ in columns]
    n = 0
    for cells in _columns(table, len(columns), passes):
        n += len(cells[0])
        check_n(n)
        for door, found, values in zip(doors, counts, cells, strict=True):
            quantised, bad = door.enter(values)
            found += histogram(quantised[~bad], STEPS)
    return counts, n


#: Never read: a door for a response alone needs a schema, and a schema a feature. No column of a
#: table can be told from it by a name that is only a line break.
_BESIDE = Column("\n", 0, 1)


def _columns(
    table: Table, count: int, passes: Passes | None
) -> Iterator[list[NDArray[np.float64]]]:
    """Blocks of cells, column by column; of one column nothing else is read."""
    if count == 1:
        yield from ([y] for y in over(passes, table.responses(), table.rows))
        return
    for x, y in over(passes, table.blocks(), table.rows):
        yield [*(np.ascontiguousarray(x[:, j]) for j in range(count - 1)), y]
