"""Moments of a table, from which `select`, `fit` and others compute without reading it again.

Building moments is not a release. It debits nothing, and its result is as private as the table. So
it may also run a query, which may fail because of a record.
"""

from __future__ import annotations

from typing import Any

from ..base.errors import ArgumentError
from ..base.validation import check_progress
from ..data.moments import Moments
from ..data.readers import Progress, Table, open_table, read_schema
from ..data.readers.passes import Passes
from ..data.readers.streams import StreamTable, stream_of
from ..data.type_checks import type_mismatches, warn_of_types
from ..schema.schema import SchemaLike
from .problem_spec import resolve_schema


def moments(
    data: Any, schema: SchemaLike, *, y: Any = None, progress: Progress | None = None
) -> Moments:
    """Compute the moments of a table in one pass. PRIVATE: the result is as private as the table.

    This is not a release: it costs nothing, and no ledger is needed. Pass the result as ``data`` to
    `select`, `fit` and the other functions that take moments, any number of times. Moments of
    several tables of different records add up: ``first + second``.

    Parameters
    ----------
    data : path, list of paths, pyarrow dataset, data frame, array, or query
        Everything that `select` takes, and what has to be computed first and is read once: a
        RecordBatchReader or another Arrow stream, a DuckDB relation, an Ibis table, a lazy frame of
        polars.
    schema : Schema, path of a bounds file, or dict of the same form
        The public description of the table.
    y : array, optional
        The response, if it is passed separately from ``data``.
    progress : callable, optional
        Called with the fraction of the rows that are read, if their number is known beforehand.

    Returns
    -------
    Moments
        Exact sums of products. `Moments.save` writes them to a file for its owner alone.

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, a name or type in the table is wrong, or a query fails. Whether
        a query fails may depend on private values. Its own error is withheld.

    Examples
    --------
    >>> import polars as pl, dpsubset as dps
    >>> lazy = pl.LazyFrame({"age": [41, 52], "cost": [300, 20]}).filter(pl.col("age") > 18)
    >>> schema = dps.Schema.from_bounds({"age": (0, 110)}, ("cost", 0, 1000))
    >>> dps.moments(lazy, schema)
    Moments(p=1, private values hidden)
    """
    check_progress(progress)
    if isinstance(data, Moments):
        raise ArgumentError("these are moments already: pass them to select or fit")
    stream = stream_of(data)
    table: Table
    if stream is not None:
        if y is not None:
            raise ArgumentError(
                "y goes with arrays and frames; a query or stream holds its response as a column"
            )
        declared = read_schema(schema, stream.head)
        table = StreamTable(stream, declared)
        mismatches = type_mismatches(stream.head, declared)
    else:
        declared = resolve_schema(data, y, schema, None)
        table = open_table(data, declared, y)
        mismatches = type_mismatches(data, declared, y)
    warn_of_types(mismatches, 3)
    # Each hundredth is reported once, whatever the number of rows is.
    passes = Passes(progress, n_is_public=True)
    return Moments.from_blocks(declared, passes.over(table.blocks(), table.rows))
