"""Histograms of quantized columns, for private quantiles.

The integers of a column are counted; bad cells are not. A record counts at most once in each
histogram, by its own cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..privacy.quantiles import histogram
from ..schema.schema import Column, Missing
from .moments import check_n
from .quantize import STEPS, ColumnQuantizer
from .readers import Table
from .readers.passes import Passes, over


def by_itself(column: Column) -> Column:
    """The declaration of a column that is read by itself: no role, no group, no indicator."""
    missing = column.missing
    if missing is not None and missing.rule in ("indicator", "drop"):
        missing = Missing(missing.codes)
    return replace(column, role="feature", group=None, missing=missing)


def count_columns(
    table: Table, columns: Sequence[Column], passes: Passes | None = None
) -> tuple[list[NDArray[np.int64]], int]:
    """The histogram of each column, in order, and the number of records. All of it is private.

    ``table`` was opened with these columns as its features.
    """
    return _counts(columns, over(passes, map(tuple, table.columns()), table.rows))


def count_response(
    response: Column, parts: Iterable[NDArray[np.float64]]
) -> tuple[NDArray[np.int64], int]:
    """The histogram of a response and the number of records, both private."""
    (counts,), n = _counts([response], ([y] for y in parts))
    return counts, n


def _counts(
    columns: Sequence[Column], batches: Iterable[Sequence[NDArray[np.float64]]]
) -> tuple[list[NDArray[np.int64]], int]:
    quantizers = [ColumnQuantizer(column) for column in columns]
    counts = [np.zeros(2 * STEPS + 1, dtype=np.int64) for _ in columns]
    n = 0
    for batch in batches:
        n += len(batch[0])
        check_n(n)
        for quantizer, found, values in zip(quantizers, counts, batch, strict=True):
            quantized = np.empty(len(values), dtype=np.int16)
            quantizer.quantize(values, quantized)
            found += histogram(quantized[~quantizer.bad(values)], STEPS)
    return counts, n
