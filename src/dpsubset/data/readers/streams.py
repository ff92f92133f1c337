"""Tables that have to be computed first, read in a single pass: Arrow streams and queries.

A query may fail because of one record, so nothing that costs epsilon reads such a table: a failure
between a debit and its release would be an answer that no guarantee covers. Building moments costs
nothing, and a failure there is seen by the curator alone. Its text, which may quote a cell, is
withheld.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...base.errors import DpsubsetError, TableError
from ...schema.schema import AnySchema
from . import ALL, Table
from .arrays import of_library
from .columns import to_narwhals
from .frames import FrameTable

#: Rows that an engine is asked for at a time.
_BATCH = 2**16

Result = TypeVar("Result")


class Stream(NamedTuple):
    """A table that is computed batch by batch.

    Attributes
    ----------
    head : frame
        A frame without rows, with the names and types of the columns.
    batches : iterator of frames
        It can be iterated over once.
    """

    head: Any
    batches: Iterator[Any]


def stream_of(data: Any) -> Stream | None:
    """Return what has to be computed first as a stream; None for tables that hold their values."""
    wrapped = to_narwhals(data, pass_through=True) if of_library(data) else None
    if isinstance(wrapped, nw.LazyFrame):
        data = wrapped.to_native()
    polars = sys.modules.get("polars")
    if polars is not None and issubclass(type(data), polars.LazyFrame):
        head = computed(lambda: polars.DataFrame(schema=data.collect_schema()))
        return Stream(head, _batches_of_lazy(data))
    reader = _reader_of(data)
    if reader is None:
        return None
    return Stream(reader.schema.empty_table(), map(_as_table, reader))


class StreamTable(Table):
    """A stream whose columns have been checked against a schema. It is read once."""

    def __init__(self, stream: Stream, schema: AnySchema) -> None:
        super().__init__(schema)
        self._schema, self._batches = schema, stream.batches
        FrameTable(stream.head, schema)  # checks names and types

    @property
    def rows(self) -> None:
        """Number of records: not known before they are read."""
        return

    def columns(self, which: slice = ALL) -> Iterator[list[NDArray[np.float64]]]:
        while (batch := computed(lambda: next(self._batches, None))) is not None:
            yield from FrameTable(batch, self._schema).columns(which)


def computed(compute: Callable[[], Result]) -> Result:
    """Return what a query computes. Its error is replaced by one that has the class name alone."""
    try:
        return compute()
    except DpsubsetError:
        raise
    except BaseException as error:
        # An error of Rust code in polars is no Exception. Others of that kind end the process.
        if not isinstance(error, Exception) and type(error).__module__ != "pyo3_runtime":
            raise
        name = type(error).__name__
    # Raised here, and not above: the error would otherwise be the context of this one.
    raise TableError(
        f"the table could not be computed: its query ended with {name}. The text of that error is "
        "withheld, because it may quote a cell. To see it, run the query by itself"
    )


def _reader_of(data: Any) -> pa.RecordBatchReader | None:
    """Return a reader of record batches, or None if the object has none."""
    kind = type(data)
    packages = {str(base.__module__).partition(".")[0] for base in kind.__mro__}
    if issubclass(kind, pa.RecordBatchReader):
        return data
    if of_library(data):
        return None
    if packages & {"duckdb", "_duckdb"} and hasattr(kind, "fetch_record_batch"):
        if not hasattr(kind, "columns"):  # a connection
            return None
        # In batches: its Arrow stream may hold the whole result.
        fetch = "to_arrow_reader" if hasattr(kind, "to_arrow_reader") else "fetch_record_batch"
        return computed(lambda: getattr(data, fetch)(_BATCH))
    if "ibis" in packages and hasattr(kind, "to_pyarrow_batches"):
        return computed(lambda: data.to_pyarrow_batches(chunk_size=_BATCH))
    if hasattr(kind, "__arrow_c_stream__"):
        return computed(lambda: pa.RecordBatchReader.from_stream(data))
    return None


def _as_table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _batches_of_lazy(lazy: Any) -> Iterator[Any]:
    """Yield frames of a lazy frame of polars, all at once in versions that have no batches."""
    if hasattr(lazy, "collect_batches"):
        yield from lazy.collect_batches(chunk_size=_BATCH)
    else:
        yield lazy.collect()
