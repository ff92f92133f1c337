"""The features of a table without a response: for predictions.

Cells read as they do for a fit: one that is missing or unreadable goes where the schema's rule
says. But nobody is protected here, so what is no row of the model's table is refused: in a fit it
would count as a row of missing cells, and here the answer would be the same for every such row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import TableError
from ...schema.schema import Column, Schema
from . import Table, open_table
from .arrays import array_of, by_rows, cells_of, is_array, is_list, is_mapping, of_library, unfolded


def feature_blocks(
    data: Any, schema: Schema, positions: Sequence[int], width: int
) -> Iterator[NDArray[Any]]:
    """What the cells of a schema's features read as.

    An array, or a list of rows, has ``width`` columns, of which the features are at ``positions``,
    or the features alone. Records that are mappings, and a mapping of columns, have them by name.
    """
    for x, _ in _open(data, schema, positions, width).blocks():
        yield x


def _open(data: Any, schema: Schema, positions: Sequence[int], width: int) -> Table:
    from .files import open_file
    from .frames import column_names, is_frame

    if isinstance(data, (str, Path)):
        if str(data).lstrip()[:1] in ("[", "{"):
            raise TableError(
                "this text looks like JSON, and text is taken for the path of a file: pass what "
                "json.loads makes of it"
            )
        return open_file(Path(data), _beside(schema, ()), beside=True)
    if is_frame(data):
        names = column_names(data)  # refuses a lazy frame
        return open_table(data, _beside(schema, names), np.zeros(data.shape[0]))
    own = len(schema.features)
    if is_mapping(data):
        x = unfolded(_rows_of_columns(data, schema.feature_names), schema.feature_names)
    elif is_list(data):
        x = _matrix(data, schema.feature_names, width)
    else:
        x = by_rows(array_of(data))
    if x.shape[1] == width and not is_named(data):
        x = x[:, list(positions)]
    elif x.shape[1] != own:
        raise TableError(
            f"X has {x.shape[1]} columns, but the model was fitted on a table with {width}: pass "
            f"as many, or the model's own {own}"
        )
    if is_mapping(data) or is_list(data):
        x = x.astype(object)  # cells of a list have no type but their own
    return open_table(x, _beside(schema, ()), np.zeros(x.shape[0]))


def rectangle(X: Any, columns: int) -> Any:
    """A list of rows as an array, where each of them has so many cells; anything else as it is."""
    if not is_list(X):
        return X
    for place, record in enumerate(X):
        if is_mapping(record) or cells_of(record) != columns:
            raise TableError(
                f"X must be two-dimensional: row {place} (from 0) is no list of {columns} cells. A "
                "single row goes into a list of its own: [[...]]"
            )
    return unfolded(X, [""] * columns)


def is_named(data: Any) -> bool:
    """Whether this is a mapping, or a list with mappings in it: cells are found by name."""
    return is_mapping(data) or (is_list(data) and any(map(is_mapping, data)))


def _matrix(data: Any, names: Sequence[str], width: int) -> NDArray[Any]:
    """A list of rows, all of them mappings, or all of them as wide as the first one."""
    if not is_named(data):
        first = cells_of(data[0]) if len(data) else width
        return np.asarray(rectangle(data, first if first == len(names) else width))
    for place, record in enumerate(data):
        if not is_mapping(record):
            raise TableError(f"row {place} (from 0) is no mapping, but others are")
        _check_names(record, names, f"row {place} (from 0)")
    return unfolded(data, names)


def _check_names(record: dict[Any, Any], names: Sequence[str], what: str) -> None:
    lacking = [name for name in names if name not in record]
    if lacking:
        shown = ", ".join(map(repr, lacking[:10])) + (", ..." if lacking[10:] else "")
        raise TableError(f"{what} has no {shown}, which the model needs")


def _rows_of_columns(data: dict[Any, Any], names: Sequence[str]) -> list[Any]:
    """The rows of a mapping of columns; of a mapping of cells, the one that it is."""
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


def _beside(schema: Schema, taken: Sequence[str]) -> Schema:
    """With a response of its own, that no table has as a column."""
    name = schema.response.name
    while name in taken or name in schema.feature_names:
        name += "_"
    return replace(schema, response=Column(name, 0, 1))
