"""Exact totals of quantized columns, and the means that noisy totals stand for.

A cell becomes an integer q with |q| <= STEPS, so one record moves a total by at most STEPS if it is
added or removed, and by 2 STEPS if it is replaced. Bad cells become what the schema's rule says, by
default the middle of their bounds, and their records count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.errors import ArgumentError
from ..schema.schema import Column
from .column_selection import ColumnSelection
from .moments import check_n
from .quantize import STEPS, Quantizer
from .readers.passes import Passes, over


@dataclass(frozen=True)
class Sums:
    """Totals of columns in steps, and the number of records. Private."""

    totals: tuple[int, ...] = field(repr=False)
    n: int = field(repr=False)

    @classmethod
    def read(cls, selection: ColumnSelection, data: Any, passes: Passes | None = None) -> Sums:
        """Read and quantize the selected columns of a table, and add them up."""
        quantizer = Quantizer(selection.reading)
        totals, n = np.zeros(quantizer.width, dtype=np.int64), 0
        table = selection.open(data)
        for x in over(passes, table.features(), table.rows):
            out = np.empty((len(x), quantizer.width), dtype=np.int16)
            quantizer.features(x, out)
            totals += out.sum(axis=0, dtype=np.int64)
            n += len(x)
            check_n(n)
        return cls(tuple(totals.tolist()), n)


def check_no_transform(columns: Sequence[Column]) -> None:
    """Refuse columns with a transform: the mean of logarithms is not the logarithm of the mean."""
    for column in columns:
        if column.transform is not None:
            raise ArgumentError(
                f"column {column.name!r} has a transform, but means are of values: leave it out"
            )


def mean_of(column: Column, total: int, n: int) -> float:
    """The mean in the column's units, within its bounds, of a total and n that may be noisy."""
    (low, high), (middle, half) = column.ends, column.middle_and_half_width
    # Without records a total is noise alone, which may lie anywhere.
    scaled = min(max(total / (max(n, 1) * STEPS), -1.0), 1.0)
    return min(max(middle + scaled * half, low), high)


def deviation_of(column: Column, deviation: float, n: int) -> float:
    """Standard deviation of the noise of a mean, in the column's units."""
    return deviation / (max(n, 1) * STEPS) * column.middle_and_half_width[1]
