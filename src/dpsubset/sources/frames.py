"""Data frames: pandas, polars, PyArrow and whatever else narwhals knows, by column name.

A column of a frame is converted by its declared type. Columns of objects, and the categories of a
categorical column, which are cells, are read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from ..errors import TableError
from ..moments import Block
from ..schema import Schema
from . import Progress, batch_rows
from .cells import NUMBERS, reader
from .columns import known, response_cells, series_cells
from .header import check_columns


def is_frame(data: Any) -> bool:
    """Whether narwhals takes this for a data frame."""
    return isinstance(known(data, pass_through=True), (nw.DataFrame, nw.LazyFrame))


def column_names(data: Any) -> list[str]:
    """Names of the columns of a frame, as text."""
    with suppress(Exception):  # a lazy frame's query may name columns that are not there
        return [str(name) for name in known(data).collect_schema().names()]
    raise TableError(_REFUSED)


class FrameTable:
    """A data frame in memory, with the response as a column or beside it as y."""

    def __init__(self, data: Any, schema: Schema, y: Any = None) -> None:
        frame = known(data)
        if isinstance(frame, nw.LazyFrame):
            frame = _collect(frame)
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
        self._columns = [series_cells(frame[:, places[name]], name) for name in wanted]
        if y is not None:
            response, rows = response_cells(y, schema.response.name)
            if rows != self._rows:
                raise TableError("the data frame and y must have the same number of rows")
            self._columns.append(response)
        self._readers = [*[NUMBERS] * len(schema.features), reader(schema.response)]

    @property
    def rows(self) -> int:
        """Number of records."""
        return self._rows

    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """Slices of rows, column by column."""
        step = batch_rows(len(self._columns) - 1)
        for start in range(0, self._rows, step):
            stop = min(start + step, self._rows)
            pairs = zip(self._columns, self._readers, strict=True)
            *x, y = (cells(start, stop, read) for cells, read in pairs)
            yield np.column_stack(x), y
            if progress:
                progress(stop / self._rows)


_REFUSED = (
    "this lazy frame's query does more than choose columns, and could fail because of one record: "
    "collect it first and pass the result, or write it to a Parquet file and pass its path"
)

#: A query of polars, line by line, that only names a table and chooses or renames its columns.
_PLAIN = re.compile(
    r"(SELECT|simple π [0-9/]+) \[(col\(\"[^\"]*\"\)(\.alias\(\"[^\"]*\"\))?(, )?)*\]"
    r"|DF \[.*\]; PROJECT [0-9*/]+ COLUMNS"
    r"|Parquet SCAN \[.*\]|PROJECT [0-9*/]+ COLUMNS|ESTIMATED ROWS: [0-9]+"
)


def _collect(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Run a query that cannot fail because of a cell; refuse any other by its text.

    A strict cast fails where one record holds a word, and that somebody's record made it fail would
    be an answer that no guarantee covers.
    """
    if frame.implementation.is_polars():
        query = ""
        with suppress(Exception):
            query = frame.to_native().explain(optimized=False)
        if query and all(_PLAIN.fullmatch(line.strip()) for line in query.splitlines()):
            return frame.collect()
    raise TableError(_REFUSED)
