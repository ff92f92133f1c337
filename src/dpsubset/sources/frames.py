"""Data frames: pandas, polars, PyArrow and whatever else narwhals knows, by column name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from ..errors import TableError
from ..moments import Block
from ..schema import Schema
from . import Progress, batch_rows
from .arrays import as_vector, floats
from .cells import NUMBERS, Reader, is_readable, reader
from .header import check_columns


def is_frame(data: Any) -> bool:
    """Whether narwhals takes this for a data frame."""
    return isinstance(_native(data, pass_through=True), (nw.DataFrame, nw.LazyFrame))


def column_names(data: Any) -> list[str]:
    """Names of the columns of a frame, as text."""
    return [str(name) for name in _run(_native(data).collect_schema).names()]


class FrameTable:
    """A data frame in memory, with the response as a column or beside it as y."""

    def __init__(self, data: Any, schema: Schema, y: Any = None) -> None:
        frame = _native(data)
        if isinstance(frame, nw.LazyFrame):
            frame = _run(frame.collect)
        self._frame, self._schema = frame, schema
        self._read = reader(schema.response)
        self._y = None if y is None else _response(y, self._read)
        names = [str(name) for name in frame.columns]
        beside = [] if self._y is None else [schema.response.name]
        check_columns([*names, *beside], schema, "the data frame")
        if self._y is not None and len(self._y[0]) != frame.shape[0]:
            raise TableError("the data frame and y must have the same number of rows")
        by_text = dict(zip(names, frame.columns, strict=True))
        self._names = [by_text[name] for name in schema.feature_names]
        if self._y is None:
            self._names.append(by_text[schema.response.name])
        for name in self._names:
            _check_type(frame[name])

    @property
    def rows(self) -> int:
        """Number of records."""
        return int(self._frame.shape[0])

    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """Slices of rows, column by column."""
        n, p = self.rows, len(self._schema.features)
        step = batch_rows(p)
        for start in range(0, n, step):
            part = self._frame[start : start + step]
            columns = [_floats(part[name]) for name in self._names[:p]]
            if self._y is None:
                response = _floats(part[self._names[p]], self._read)
            else:
                y, read = self._y
                response = floats(y[start : start + step], read)
            yield np.column_stack(columns), response
            if progress:
                progress(min(1.0, (start + step) / n))


def _native(data: Any, **how: Any) -> Any:
    with suppress(DuplicateError):
        return nw.from_native(data, **how)
    # narwhals' own error lists the table's names, which in a table without a header are cells.
    raise TableError("the data frame has several columns of one name: names must be unique")


def _run(query: Callable[[], Any]) -> Any:
    """Run a lazy frame's query. The engine's own errors may quote cells, so they stop here."""
    with suppress(Exception):
        return query()
    raise TableError("the lazy frame's own query failed: collect it first and pass the result")


def _check_type(series: nw.Series[Any]) -> None:
    kind = series.dtype
    if kind.is_temporal() or kind.is_nested():
        # The bare name of the type: in full, a nested one lists its fields and categories.
        raise TableError(
            f"column {series.name!r} holds {type(kind).__name__}, which is no number: convert it, "
            "or give it the role 'ignored'"
        )


def _floats(series: nw.Series[Any], read: Reader = NUMBERS) -> NDArray[np.float64]:
    if series.dtype in (nw.Object, nw.Unknown):
        return read.from_objects(series.to_list())
    try:
        column = series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Mixed cells in a column that passes for text: take them one by one.
        return read.from_objects(series.to_list())
    if is_readable(column.type):
        return read.from_arrow(column)
    return read.from_objects(column.to_pylist())


def _response(y: Any, read: Reader) -> tuple[NDArray[Any], Reader]:
    """A response beside its frame, with what reads it: a series of another library is read here."""
    series = _native(y, pass_through=True, allow_series=True)
    if isinstance(series, nw.DataFrame):
        series = series[:, 0] if series.shape[1] == 1 else series
    if isinstance(series, nw.Series):
        return _floats(series, read), NUMBERS
    return as_vector(y), read
