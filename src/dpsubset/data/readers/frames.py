"""Data frames of pandas, polars and PyArrow, also when wrapped by narwhals; columns by name.

A column is converted by its dtype. Columns of objects, and the categories of a categorical column,
are read cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...base.errors import TableError
from ...schema.schema import AnySchema
from . import ALL, Table, batch_rows
from .arrays import of_library, refusal
from .cells import readers
from .columns import response_cells, series_cells, to_narwhals
from .header import check_columns


def is_frame(data: Any) -> bool:
    """Whether this is a data frame. Of other objects only the type is looked at."""
    if not of_library(data):
        return False
    return isinstance(to_narwhals(data, pass_through=True), (nw.DataFrame, nw.LazyFrame))


def as_table(data: Any) -> Any:
    """An Arrow record batch as a table, which other libraries support; others unchanged."""
    # By its type alone: reading __class__ of a lazy object could compute it.
    return pa.Table.from_batches([data]) if issubclass(type(data), pa.RecordBatch) else data


def names_of_frame(data: Any) -> list[str]:
    """Column names of a frame, as text."""
    return [str(name) for name in _eager(data).columns]


class FrameTable(Table):
    """A data frame in memory, with the response as a column or passed as y."""

    def __init__(self, data: Any, schema: AnySchema, y: Any = None) -> None:
        super().__init__(schema)
        frame = _eager(data)
        names = [str(name) for name in frame.columns]
        response = None if y is None else schema.response
        if response is not None and response.name in names:
            raise TableError(
                f"the data frame has a column {response.name!r}, which the schema names as "
                "the response, and y was passed too: leave y out, or leave that column out"
            )
        present = [*names, *([response.name] if response else [])]
        _check_index(frame, present, schema)
        check_columns(present, schema, "the data frame")
        self._rows = int(frame.shape[0])
        wanted = schema.columns_read if response is None else schema.features
        # All at once: of an Arrow table, one column by its position takes time for every name.
        held: dict[str, Any] = dict(zip(names, frame.iter_columns(), strict=True))
        self._readers = readers(schema)
        self._columns = [
            series_cells(held[column.name], column.name, read.takes)
            for column, read in zip(wanted, self._readers, strict=response is None)
        ]
        if response is not None:
            cells, rows = response_cells(y, response.name, self._readers[-1].takes)
            if rows != self._rows:
                raise TableError("the data frame and y must have the same number of rows")
            self._columns.append(cells)

    @property
    def rows(self) -> int:
        return self._rows

    def columns(self, which: slice = ALL) -> Iterator[list[NDArray[np.float64]]]:
        pairs = list(zip(self._columns, self._readers, strict=True))[which]
        step = batch_rows(len(pairs))
        for start in range(0, self._rows, step):
            stop = min(start + step, self._rows)
            yield [cells(start, stop, read) for cells, read in pairs]


def _check_index(frame: nw.DataFrame[Any], present: list[str], schema: AnySchema) -> None:
    """Refuse a frame of pandas that has a declared column in its index."""
    levels = frame.to_native().index.names if frame.implementation.is_pandas() else ()
    for column in schema.columns_read:
        if column.name in levels and column.name not in present:
            raise TableError(
                f"the data frame has {column.name!r} in its index, not among its columns: call "
                "reset_index() first"
            )


def _eager(data: Any) -> nw.DataFrame[Any]:
    """The frame; an error if its values have yet to be computed."""
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = to_narwhals(data)
    if isinstance(frame, nw.LazyFrame):
        raise refusal(data, "the table")
    kind = frame.implementation
    if not (kind.is_pandas() or kind.is_polars() or kind.is_pyarrow()):
        raise refusal(frame.to_native(), "the table")
    if kind.is_pandas() and getattr(frame.to_native().columns, "nlevels", 1) > 1:
        raise TableError(
            "the data frame's column names have several levels (a MultiIndex), and a schema names "
            "columns by one text each. Join the levels first: frame.columns = "
            "['_'.join(map(str, levels)) for levels in frame.columns]"
        )
    return frame
