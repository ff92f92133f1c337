"""Readers: convert a table of any supported kind to blocks of float64 for the quantizer.

Opening a table checks names and types of its columns against a schema. Reading it yields blocks of
records and never fails because of a cell: a missing or unreadable cell becomes NaN, to which the
quantizer applies the schema's rule. To add a kind of table, write its module and add it to
`open_table`, or for a file to the functions of `files`. Paths, folders, patterns, lists of paths
and datasets are tables of parts (`parts.parts_of`), each of which its own reader opens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...base.errors import ArgumentError, SchemaError, TableError
from ...schema.bounds_file import facts_of, has_patterns, response_name, separator_of
from ...schema.schema import AnySchema, Schema, SchemaLike
from ..moments import Block

#: Receives the fraction of the work that is done; see `passes` for when it is called.
Progress = Callable[[float], None]

ALL = slice(None)


class Remote(Protocol):
    """A file that is not on a local disk."""

    name: str

    def open(self) -> pa.NativeFile:
        """Open it for reading at any place."""


#: A file with types, to be opened for each pass.
Source = Path | Remote


def batch_rows(columns: int) -> int:
    """Number of rows of a batch of about 64 MB."""
    return max(64, min(2**16, 2**23 // (columns + 1)))


class Table(ABC):
    """An opened table whose columns have been checked against a schema."""

    def __init__(self, schema: AnySchema) -> None:
        self._features = len(schema.features)

    @property
    @abstractmethod
    def rows(self) -> int | None:
        """Number of records, if it is known before they are read. It may be private."""

    @abstractmethod
    def columns(self, which: slice = ALL) -> Iterator[list[NDArray[np.float64]]]:
        """Batches of some columns, by position: the schema's features and, last, its response."""

    def blocks(self) -> Iterator[Block]:
        """Batches of records: the features, of shape (rows, features), and the response."""
        for *x, y in self.columns():
            yield np.column_stack(x), y

    def features(self) -> Iterator[NDArray[Any]]:
        """Batches of the features alone."""
        for x in self.columns(slice(self._features)):
            yield np.column_stack(x)

    def responses(self) -> Iterator[NDArray[np.float64]]:
        """Batches of the response alone, read as in `blocks`."""
        for (y,) in self.columns(slice(-1, None)):
            yield y


def read_schema(source: SchemaLike, data: Any, y: Any = None) -> Schema:
    """Read a bounds file, or a dict of the same form; a Schema is returned unchanged.

    Patterns are expanded by the column names of a file or frame.
    """
    if isinstance(source, Schema):
        return source
    if not isinstance(source, (str, Path, Mapping)):
        raise ArgumentError(
            "schema must be a dpsubset.Schema, the path of a bounds file, or a dict of the same "
            "form. A response that is not in the table is passed by name, as in y=..."
        )
    if not isinstance(source, Mapping):
        from .files import is_table_path

        if is_table_path(Path(source)):
            raise SchemaError(
                f"{Path(source).name} is a table, by its extension, and a bounds file is YAML or "
                "JSON. The table comes first: select(data, schema, ...)"
            )
    facts = facts_of(source)
    names = _names(data, separator_of(facts), y) if has_patterns(facts) else None
    response = response_name(facts)
    if names is not None and y is not None and response is not None and response not in names:
        names = [*names, response]
    return Schema.from_dict(facts, names)


def _names(data: Any, separator: str | None = None, y: Any = None) -> list[str] | None:
    """Column names of files, a dataset or a frame, None for other tables. Reads no row.

    Of several parts, those that all of them have.
    """
    from .parts import common_names, parts_of

    parts = parts_of(data, y)
    if parts is not None:
        return common_names(parts, separator)
    from .frames import is_frame, names_of_frame
    from .header import looks_like_a_value

    if not is_frame(data):
        return None
    names = names_of_frame(data)
    if any(map(looks_like_a_value, names)):
        raise TableError(
            "the data frame's column names look like data: patterns need a frame with names"
        )
    return names


def column_names(data: Any, separator: str | None = None) -> list[str]:
    """Column names of files or a frame. Reads no row; ``separator`` is that of text files."""
    names = _names(data, separator)
    if names is None:
        raise TableError("a table with column names is needed: a file or a data frame")
    return names


def sample_cells(data: Any, schema: Schema, rows: int) -> list[list[Any]]:
    """Raw cells of the first rows, the response last. NOT PRIVATE: for public sample rows."""
    from .parts import first_cells, parts_of

    parts = parts_of(data)
    if parts is not None:
        return first_cells(parts, schema, rows)
    from .columns import to_narwhals
    from .frames import is_frame

    if not is_frame(data):
        raise TableError("sample rows need column names: pass a file or a data frame")
    frame = to_narwhals(data).head(rows)
    columns = [frame[column.name].to_list() for column in schema.columns_read]
    return [list(row) for row in zip(*columns, strict=True)]


def open_table(data: Any, schema: AnySchema, y: Any = None) -> Table:
    """Open a path, folder, pattern, list of paths or dataset; a data frame or an array."""
    from .parts import PartsTable, has_parts, parts_of

    if y is not None and has_parts(data, y):
        raise ArgumentError("y goes with arrays and frames; files hold their response as a column")
    parts = parts_of(data, y)
    if parts is not None:
        return PartsTable(parts, schema)
    from .frames import FrameTable, is_frame

    if is_frame(data):
        return FrameTable(data, schema, y)
    from .matrix import MatrixTable

    return MatrixTable(data, schema, y)
