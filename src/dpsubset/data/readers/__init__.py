"""Sources: from a table of any kind to blocks of float64 for the door.

A source checks, by names and types alone, that the table has the columns the schema asks for; then
it yields blocks of records. It never fails because of a cell: what is missing or unreadable becomes
NaN, which the door maps by the schema's rule. To add a source, write its file and its row in
`open_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from ...base.errors import ArgumentError, TableError
from ...schema.bounds_file import has_patterns, load, response_name, separator_of
from ...schema.schema import Schema
from ..moments import Block

#: Called now and then with the fraction of the work that is done; `passes` says what it is told.
Progress = Callable[[float], None]


def batch_rows(columns: int) -> int:
    """Rows of a batch, so that it stays at some 64 MB however wide the table is."""
    return max(64, min(2**16, 2**23 // (columns + 1)))


class Table(Protocol):
    """An opened table whose columns have been checked against a schema."""

    @property
    def rows(self) -> int | None:
        """How many records, where that is known before they are read. May be private."""

    def blocks(self) -> Iterator[Block]:
        """Blocks of records: the schema's features and its response."""

    def responses(self) -> Iterator[NDArray[Any]]:
        """The response alone, cell by cell as in the blocks; nothing else need be read."""


def read_schema(path: str | Path, data: Any, y: Any = None) -> Schema:
    """Read a bounds file; its patterns stand for the columns of a file or frame, by their names."""
    facts = load(path)
    names = _names(data, separator_of(facts)) if has_patterns(facts) else None
    response = response_name(facts)
    if names is not None and y is not None and response is not None and response not in names:
        names = [*names, response]
    return Schema.from_dict(facts, names)


def _names(data: Any, separator: str | None = None) -> list[str] | None:
    """Column names of what has some; reads no row."""
    if isinstance(data, (str, Path)):
        from .files import header

        return header(data, separator)
    from .frames import column_names, is_frame
    from .header import looks_like_a_value

    if not is_frame(data):
        return None
    names = column_names(data)
    if any(map(looks_like_a_value, names)):
        raise TableError(
            "the data frame's column names look like data: patterns need a frame with names"
        )
    return names


def column_names(data: Any, separator: str | None = None) -> list[str]:
    """Column names of a file or frame; reads no row. ``separator`` is of the columns of a file."""
    names = _names(data, separator)
    if names is None:
        raise TableError("a table with column names is needed: a file or a data frame")
    return names


def sample_cells(data: Any, schema: Schema, rows: int) -> list[list[Any]]:
    """The cells of the first rows as they are, the response last. NOT PRIVATE: for sample rows."""
    names = [*schema.feature_names, schema.response.name]
    if isinstance(data, (str, Path)):
        from .files import file_cells

        return file_cells(Path(data), schema, rows)
    from .columns import known
    from .frames import is_frame

    if not is_frame(data):
        raise TableError("sample rows need column names: pass a file or a data frame")
    columns = [known(data).head(rows)[name].to_list() for name in names]
    return [list(row) for row in zip(*columns, strict=True)]


def open_table(data: Any, schema: Schema, y: Any = None) -> Table:
    """Open a path, a data frame or an array."""
    if isinstance(data, (str, Path)):
        if y is not None:
            raise ArgumentError("y goes with arrays; a file holds its response as a column")
        from .files import open_file

        return open_file(Path(data), schema)
    from .frames import FrameTable, is_frame

    if is_frame(data):
        return FrameTable(data, schema, y)
    from .matrix import MatrixTable

    return MatrixTable(data, schema, y)
