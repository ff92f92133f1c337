"""The features of a table, read for predictions.

Cells are read as in a fit: a missing or unreadable cell gets the value that the schema's rule says.
But a prediction needs no protection, so a record that does not fit the model's table is an error
here. In a fit it counts as a record of missing cells, and every such record would get the same
prediction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import TableError
from ...schema.schema import FeatureSchema, Schema
from . import Table, open_table
from .arrays import (
    array_of,
    by_rows,
    is_array,
    is_list,
    is_mapping,
    of_library,
    record_length,
    records_of_list,
)


def feature_blocks(
    data: Any, schema: Schema, positions: Sequence[int], width: int
) -> Iterator[NDArray[Any]]:
    """Read the features of a schema, in batches of rows.

    An array, or a list of rows, has either ``width`` columns, with the features at ``positions``,
    or the features alone. Records that are mappings, and a mapping of columns, are read by name.
    """
    return _open(data, schema, positions, width).features()


def _open(data: Any, schema: Schema, positions: Sequence[int], width: int) -> Table:
    from .frames import is_frame
    from .parts import PartsTable, parts_of

    own = FeatureSchema(schema.features, schema.bad_cells, schema.separator)
    names = schema.feature_names
    if isinstance(data, (str, Path)) and str(data).lstrip()[:1] in ("[", "{"):
        raise TableError(
            "this text looks like JSON, but text is taken for the path of a file: pass the result "
            "of json.loads"
        )
    parts = parts_of(data)
    if parts is not None:
        return PartsTable(parts, own, refuse_bad_lines=True)
    if is_frame(data):
        return open_table(data, own)
    if is_mapping(data):
        x = records_of_list(_rows_of_columns(data, names), names)
    elif is_list(data):
        x = _matrix(data, names, width)
    else:
        x = by_rows(array_of(data))
    if x.shape[1] == width and not is_named(data):
        x = x[:, list(positions)]
    elif x.shape[1] != len(names):
        raise TableError(
            f"X has {x.shape[1]} columns, but the model was fitted on a table with {width}: pass "
            f"as many, or the model's own {len(names)}"
        )
    if is_mapping(data) or is_list(data):
        x = x.astype(object)  # cells of a list have no common type
    return open_table(x, own)


def rectangle(X: Any, columns: int) -> Any:
    """A list of rows as an array; an error unless each row has so many cells. Others unchanged."""
    if not is_list(X):
        return X
    for place, record in enumerate(X):
        if is_mapping(record) or record_length(record) != columns:
            raise TableError(
                f"X must be two-dimensional: row {place} (from 0) is not a list of {columns} "
                "cells. Pass a single row as a list of one row: [[...]]"
            )
    return records_of_list(X, [""] * columns)


def is_named(data: Any) -> bool:
    """Whether cells are found by name: in a mapping, or in a list with mappings."""
    return is_mapping(data) or (is_list(data) and any(map(is_mapping, data)))


def _matrix(data: Any, names: Sequence[str], width: int) -> NDArray[Any]:
    """A list of rows that are all mappings, or all of the same length, as an array."""
    if not is_named(data):
        first = record_length(data[0]) if len(data) else width
        return np.asarray(rectangle(data, first if first == len(names) else width))
    for place, record in enumerate(data):
        if not is_mapping(record):
            raise TableError(f"row {place} (from 0) is not a mapping, but others are")
        _check_names(record, names, f"row {place} (from 0)")
    return records_of_list(data, names)


def _check_names(record: dict[Any, Any], names: Sequence[str], what: str) -> None:
    lacking = [name for name in names if name not in record]
    if lacking:
        shown = ", ".join(map(repr, lacking[:10])) + (", ..." if lacking[10:] else "")
        raise TableError(f"{what} has no {shown}, which the model needs")


def _rows_of_columns(data: dict[Any, Any], names: Sequence[str]) -> list[Any]:
    """The rows of a mapping of columns; a mapping of single cells is one row."""
    _check_names(data, names, "the mapping")
    columns = [data[name] for name in names]
    if any(map(is_mapping, columns)):
        raise TableError(
            "the values of the mapping are mappings, as to_dict() and to_json() of a pandas frame "
            "make them by default: use orient='records' or 'list'"
        )
    long = [is_list(c) or ((is_array(c) or of_library(c)) and hasattr(c, "__len__"))
            for c in columns]  # fmt: skip
    if not any(long):
        return [tuple(columns)]
    if not all(long):
        raise TableError("some values of the mapping are columns, and others are single cells")
    if len(set(map(len, columns))) > 1:
        raise TableError("the columns of the mapping differ in length")
    return list(zip(*columns, strict=True))
