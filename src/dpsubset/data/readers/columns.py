"""Columns: cells of one kind, read by the type of their column, or one by one if it has none."""

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
from .arrays import as_vector, is_list, length, of_library, part_of, refusal, unfolded_cells
from .arrow import from_arrow, is_readable
from .cells import NUMBERS, Reader, Takes, from_array, from_objects


class Cells(Protocol):
    """One column, from one row to another as float64."""

    def __call__(self, start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        """Cells ``start`` to ``stop``."""


def in_parts(cells: Cells, rows: int, read: Reader) -> Iterator[NDArray[np.float64]]:
    """One column by itself, so many rows."""
    step = batch_rows(1)
    for start in range(0, rows, step):
        yield cells(start, min(start + step, rows), read)


def series_cells(series: nw.Series[Any], name: str, takes: Takes = NUMBERS.takes) -> Cells:
    """A column of a frame, or an error if its type holds nothing of what is declared."""
    cells, kind = _typed(series, takes)
    if cells is None:
        # The bare name of the type: in full, a nested one lists its fields and categories.
        raise TableError(f"column {name!r} holds {kind}, {unreadable(takes)}")
    return cells


def unreadable(takes: Takes) -> str:
    """What an error says of a type, no cell of which could be read as what is declared."""
    if "date" in takes:
        how = "which is no date, as the schema declares it: declare bounds that are numbers"
    elif takes == NUMBERS.takes:
        how = "which is no number: declare kind: date, with dates as bounds, if it holds dates"
    else:
        how = (
            "and none of the levels or labels declared for it can stand in such a column, so that "
            "no cell of it could be read: declare those that can (such as 0 and 1)"
        )
    return f"{how}, convert it, or give it the role 'ignored'"


#: A column, None if its type cannot hold what is declared; and what that type is called.
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
    """A column of Arrow's."""

    def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        return from_arrow(column.slice(start, stop - start), read)

    kind = str(column.type).partition("<")[0]
    return (cells if is_readable(column.type, takes) else None), kind


def object_cells(part: Callable[[int, int], Sequence[Any]]) -> Cells:
    """A column without a type, of which ``part`` gives a list."""

    def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        return from_objects(part(start, stop), read)

    return cells


def known(data: Any, **how: Any) -> Any:
    """What narwhals makes of a frame or a series."""
    if isinstance(data, pa.RecordBatch):  # which it does not know
        data = pa.Table.from_batches([data])
    with suppress(DuplicateError):
        return nw.from_native(data, **how)
    # narwhals' own error lists the table's names, which in a table without a header are cells.
    raise TableError("the data frame has several columns of one name: names must be unique")


def response_cells(y: Any, name: str, takes: Takes = NUMBERS.takes) -> tuple[Cells, int]:
    """A response beside X, and its length."""
    if is_list(y):
        # Whose cells are looked at when they are read, not before.
        def listed(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
            return from_array(unfolded_cells(part_of(y, start, stop)), read)

        return listed, length(y)
    series = column_of(y) if of_library(y) else None
    if series is not None:
        return series_cells(series, name, takes), len(series)
    array = as_vector(y, takes)

    def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        return from_array(array[start:stop], read)

    return cells, len(array)


def column_of(y: Any) -> nw.Series[Any] | None:
    """A response of a library that knows columns; None if it is no column."""
    if isinstance(y, pa.Array):
        y = pa.chunked_array([y])
    pandas = sys.modules.get("pandas")
    if pandas and isinstance(y, pandas.MultiIndex):
        raise TableError("y is an index of several levels: pass one column of it")
    if pandas and isinstance(y, (pandas.api.extensions.ExtensionArray, pandas.Index)):
        # As an array of NumPy's its type would depend on the cells, and so would a guessed one.
        y = pandas.Series(y, dtype=y.dtype)
    found = known(y, pass_through=True, allow_series=True)
    if isinstance(found, nw.LazyFrame):
        raise refusal(y, "y")
    if isinstance(found, nw.DataFrame) and found.shape[1] == 1:
        found = found[:, 0]
    return found if isinstance(found, nw.Series) else None
