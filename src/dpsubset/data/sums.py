"""Sums: exact totals of columns behind the door, and what a noisy one says of a mean.

A cell becomes an integer q with |q| <= STEPS, so the total of a column is one, and one record moves
it by at most STEPS if it is added or removed, 2 STEPS if it is replaced. Bad cells go where the
schema's rule says, the middle of their bounds by default, and count as records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..base.errors import ArgumentError
from ..schema.schema import Column, Missing, Schema
from .column_selection import ColumnSelection
from .moments import check_n
from .quantize import STEPS, Quantizer
from .readers.passes import Passes, over


@dataclass(frozen=True)
class Sums:
    """Totals of columns in steps, and the number of records. Private.

    Attributes
    ----------
    totals : tuple of int
    n : int
    """

    totals: tuple[int, ...] = field(repr=False)
    n: int = field(repr=False)

    @classmethod
    def read(cls, listing: ColumnSelection, data: Any, passes: Passes | None = None) -> Sums:
        """Send the columns of a listing through the door."""
        door, width = Quantizer(_counting_all(listing)), len(listing.columns)
        totals, n = np.zeros(width, dtype=np.int64), 0
        table = listing.open(data)
        for x, y in over(passes, table.blocks(), table.rows):
            out = np.empty((len(y), door.width), dtype=np.int16)
            door.records(x, y, out)
            # A schema has another column before a single one.
            totals += out[:, -width:].sum(axis=0, dtype=np.int64)
            n += len(y)
            check_n(n)
        return cls(tuple(totals.tolist()), n)


def _counting_all(listing: ColumnSelection) -> Schema:
    """What a listing reads as, with a rule for bad cells of its last column too.

    A schema takes that one for a response, and would leave out the other columns with it.
    """
    schema = listing.reading
    bad_cells = "middle" if listing.schema is None else listing.schema.bad_cells
    last = schema.response
    if last.drops_rows:
        codes = () if last.missing is None else last.missing.codes
        last = replace(last, missing=Missing(codes, bad_cells))
    return replace(schema, response=last, bad_cells=bad_cells)


def check_plain(columns: Sequence[Column]) -> None:
    """A mean of logarithms is not the logarithm of a mean."""
    for column in columns:
        if column.transform is not None:
            raise ArgumentError(
                f"column {column.name!r} has a transform: a mean is one of values, so leave it out"
            )


def mean_of(column: Column, total: int, n: int) -> float:
    """A mean in the column's units, within its bounds. Total and n are released or public."""
    low, high = column.span
    assert low is not None
    assert high is not None
    # Without records the noise is all there is, and the mean is somewhere.
    share = min(max(total / (max(n, 1) * STEPS), -1.0), 1.0)
    return min(max(low / 2 + high / 2 + share * (high / 2 - low / 2), low), high)


def deviation_of(column: Column, deviation: float, n: int) -> float:
    """Standard deviation of the noise of a mean, in the column's units."""
    low, high = column.span
    assert low is not None
    assert high is not None
    return deviation / (max(n, 1) * STEPS) * (high / 2 - low / 2)
