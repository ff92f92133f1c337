"""Data frames of pandas, polars and PyArrow, and narwhals' own around them, by column name.

A column of a frame is converted by its declared type. Columns of objects, and the categories of a
categorical column, which are cells, are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...base.errors import TableError
from ...schema.schema import Schema
from ..moments import Block
from . import batch_rows
from .arrays import of_library, refusal
from .cells import readers
from .columns import in_parts, known, response_cells, series_cells
from .header import check_columns


def is_frame(data: Any) -> bool:
    """Whether this is a data frame, by its type: nothing else is asked of other objects."""
    if not of_library(data):
        return False
    return isinstance(known(data, pass_through=True), (nw.DataFrame, nw.LazyFrame))


def as_table(data: Any) -> Any:
    """A batch of Arrow's as a table, which other libraries know; anything else as it is."""
    # By its type alone: to ask a lazy object for its class could compute it.
    return pa.Table.from_batches([data]) if issubclass(type(data), pa.RecordBatch) else data


def column_names(data: Any) -> list[str]:
    """Names of the columns of a frame, as text."""
    return [str(name) for name in _eager(data).columns]


class FrameTable:
    """A data frame in memory, with the response as a column or beside it as y."""

    def __init__(self, data: Any, schema: Schema, y: Any = None) -> None:
        frame = _eager(data)
        names = [str(name) for name in frame.columns]
        if y is not None and schema.response.name in names:
            raise TableError(
                f"the data frame has a column {schema.response.name!r}, which the schema names as "
                "the response, and y was passed too: leave y out, or leave that column out"
            )
        beside = [] if y is None else [schema.response.name]
        check_columns([*names, *beside], schema, "the data frame")
        self._rows = int(frame.shape[0])
        wanted = [*schema.feature_names, *([schema.response.name] if y is None else [])]
        places = {name: i for i, name in enumerate(names)}
        self._readers = readers(schema)
        self._columns = [
            series_cells(frame[:, places[name]], name, read.takes)
            for name, read in zip(wanted, self._readers, strict=y is None)
        ]
        if y is not None:
            response, rows = response_cells(y, schema.response.name, self._readers[-1].takes)
            if rows != self._rows:
                raise TableError("the data frame and y must have the same number of rows")
            self._columns.append(response)

    @property
    def rows(self) -> int:
        """Number of records."""
        return self._rows

    def blocks(self) -> Iterator[Block]:
        """Slices of rows, column by column."""
        step = batch_rows(len(self._columns) - 1)
        for start in range(0, self._rows, step):
            stop = min(start + step, self._rows)
            pairs = zip(self._columns, self._readers, strict=True)
            *x, y = (cells(start, stop, read) for cells, read in pairs)
            yield np.column_stack(x), y

    def responses(self) -> Iterator[NDArray[np.float64]]:
        """Slices of one column."""
        return in_parts(self._columns[-1], self._rows, self._readers[-1])


def _eager(data: Any) -> nw.DataFrame[Any]:
    """The frame, if it holds its values."""
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = known(data)
    if isinstance(frame, nw.LazyFrame):
        raise refusal(data, "the table")
    kind = frame.implementation
    if not (kind.is_pandas() or kind.is_polars() or kind.is_pyarrow()):
        raise refusal(frame.to_native(), "the table")
    return frame
