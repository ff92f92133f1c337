"""Columns in memory, read by their type; a column without a type is read cell by cell."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from ...base.errors import TableError
from . import batch_rows
from .arrays import as_vector, cells_of_list, is_list, of_library, refusal
from .arrow import from_arrow, is_readable
from .cells import Reader, Takes, from_array, from_objects, unreadable


class Cells(Protocol):
    """Reads rows ``start`` to ``stop`` of one column as float64."""

    def __call__(self, start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        """Read these rows."""


def in_parts(cells: Cells, rows: int, read: Reader) -> Iterator[NDArray[np.float64]]:
    step = batch_rows(1)
    for start in range(0, rows, step):
        yield cells(start, min(start + step, rows), read)


def series_cells(series: nw.Series[Any], name: str, takes: Takes) -> Cells:
    """Return the reader of a column of a frame; an error if no cell of its type can be read."""
    cells, kind = _typed(series, takes)
    if cells is None:
        # Only the name of the type: its full form may list fields and categories.
        raise TableError(f"column {name!r} holds {kind}, {unreadable(takes)}")
    return cells


#: A column, None if no cell of its type can be read; and the name of its type.
Typed = tuple[Cells | None, str]


def _typed(series: nw.Series[Any], takes: Takes) -> Typed:
    if series.implementation.is_pandas():
        from .pandas import pandas_cells

        return pandas_cells(series.to_native(), takes)
    if series.implementation.is_polars():
        from .polars import polars_cells

        return polars_cells(series.to_native(), takes)
    if series.implementation.is_pyarrow():
        return arrow_cells(series.to_native(), takes)
    raise refusal(series.to_native(), "a column")


def arrow_cells(column: pa.ChunkedArray, takes: Takes) -> Typed:
    def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        return from_arrow(column.slice(start, stop - start), read)

    kind = str(column.type).partition("<")[0]
    return (cells if is_readable(column.type, takes) else None), kind


def object_cells(part: Callable[[int, int], Sequence[Any]]) -> Cells:
    """A column without a type; ``part(start, stop)`` returns its cells."""

    def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        return from_objects(part(start, stop), read)

    return cells


def to_narwhals(data: Any, **options: Any) -> Any:
    """Wrap a frame or a series with narwhals."""
    if isinstance(data, pa.RecordBatch):  # narwhals does not support it
        data = pa.Table.from_batches([data])
    with suppress(DuplicateError):
        return nw.from_native(data, **options)
    # narwhals' own error lists the table's names, which in a table without a header are cells.
    raise TableError("the data frame has several columns of one name: names must be unique")


def response_cells(y: Any, name: str, takes: Takes) -> tuple[Cells, int]:
    """Return the reader of a response that is passed as y, and its length."""
    if is_list(y):

        def list_cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
            return from_array(cells_of_list(y[start:stop]), read)

        return list_cells, len(y)
    series = series_of(y) if of_library(y) else None
    if series is not None:
        return series_cells(series, name, takes), len(series)
    array = as_vector(y, takes)

    def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        return from_array(array[start:stop], read)

    return cells, len(array)


def series_of(y: Any) -> nw.Series[Any] | None:
    """A response of a data-frame library as a series; None if it is not a single column."""
    if isinstance(y, pa.Array):
        y = pa.chunked_array([y])
    pandas = sys.modules.get("pandas")
    if pandas and isinstance(y, pandas.MultiIndex):
        raise TableError("y is an index of several levels: pass one column of it")
    if pandas and isinstance(y, (pandas.api.extensions.ExtensionArray, pandas.Index)):
        # With its own dtype: an inferred one would depend on the cells.
        y = pandas.Series(y, dtype=y.dtype)
    found = to_narwhals(y, pass_through=True, allow_series=True)
    if isinstance(found, nw.LazyFrame):
        raise refusal(y, "y")
    if isinstance(found, nw.DataFrame) and found.shape[1] == 1:
        found = found[:, 0]
    return found if isinstance(found, nw.Series) else None
