"""Tables that are made of parts: files, and fragments of an Arrow dataset.

Each part is opened by the reader of its kind, so a cell reads as it does in a table of one file.
Parts may have their columns in another order, and types of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...base.errors import TableError
from ...schema.schema import AnySchema, Schema
from . import ALL, Table
from .files import file_cells, file_types, first_line, header, open_file
from .paths import files_of, is_list_of_paths

#: What tells that a file has not changed: its size, the time of its last change, its number.
State = tuple[int, ...] | None


class Part(Protocol):
    """A part of a table, whose values have not been read."""

    @property
    def name(self) -> str:
        """What errors call it."""

    def types(self) -> pa.Schema | None:
        """Names and types of its columns; None if they have no types."""

    def header(self, separator: str | None) -> list[str]:
        """Column names, checked: of a text file, they may be a record."""

    def names(self, separator: str | None) -> list[str]:
        """Column names as they are."""

    def open(self, schema: AnySchema, *, refuse_bad_lines: bool) -> Table:
        """Open it and check its columns."""

    def cells(self, schema: Schema, rows: int) -> list[list[Any]]:
        """Raw cells of its first rows. NOT PRIVATE."""

    def state(self) -> State:
        """What changes if the part does; None for what cannot change."""


class FilePart:
    """A file as a part of a table."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return str(self._path)

    def types(self) -> pa.Schema | None:
        return file_types(self._path)

    def header(self, separator: str | None) -> list[str]:
        return header(self._path, separator)

    def names(self, separator: str | None) -> list[str]:
        return first_line(self._path, separator)

    def open(self, schema: AnySchema, *, refuse_bad_lines: bool) -> Table:
        return open_file(self._path, schema, refuse_bad_lines=refuse_bad_lines)

    def cells(self, schema: Schema, rows: int) -> list[list[Any]]:
        return file_cells(self._path, schema, rows)

    def state(self) -> State:
        stat = self._path.stat()
        return stat.st_size, stat.st_mtime_ns, stat.st_ino


def has_parts(data: Any, y: Any = None) -> bool:
    """Whether this is a path, folder, pattern, list of paths or Arrow dataset, by its type.

    A list beside which there is a ``y`` is one of records.
    """
    return _names_files(data, y) or is_dataset(data)


def parts_of(data: Any, y: Any = None) -> Sequence[Part] | None:
    """Return the parts of a table that has some; None of others."""
    if _names_files(data, y):
        return [FilePart(path) for path in files_of(data)]
    if not is_dataset(data):
        return None
    from .datasets import parts_of_dataset

    return parts_of_dataset(data)


def _names_files(data: Any, y: Any) -> bool:
    return isinstance(data, (str, Path)) or (y is None and is_list_of_paths(data))


def is_dataset(data: Any) -> bool:
    """Whether this is a dataset of pyarrow. Of other objects only the type is looked at."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and issubclass(type(data), module.Dataset)


def common_names(parts: Sequence[Part], separator: str | None = None) -> list[str]:
    """Column names that every part has, in the order of the first. Reads no row."""
    with _of_part(parts, 0) as first:
        found = first.header(separator)
    for place in range(1, len(parts)):
        with _of_part(parts, place) as part:
            present = set(part.header(separator))
        found = [name for name in found if name in present]
    return found


def undeclared_names(parts: Sequence[Part], schema: Schema) -> list[str]:
    """Column names of any part that the schema does not declare, each once."""
    known = {*(column.name for column in schema.columns), schema.response.name}
    names = (name for part in parts for name in part.names(schema.separator))
    return [name for name in dict.fromkeys(names) if name not in known]


def first_cells(parts: Sequence[Part], schema: Schema, rows: int) -> list[list[Any]]:
    """Raw cells of the first rows, the response last. NOT PRIVATE."""
    found: list[list[Any]] = []
    for part in parts:
        if len(found) < rows:
            found += part.cells(schema, rows - len(found))
    return found


class PartsTable(Table):
    """Parts whose columns have all been checked against one schema, one part after another.

    The parts must not change while the table is in use. A later pass over other rows would belong
    to another table than the one whose cost was debited, so a changed part is an error. The error
    depends on sizes and times of files alone.
    """

    def __init__(
        self, parts: Sequence[Part], schema: AnySchema, *, refuse_bad_lines: bool = False
    ) -> None:
        super().__init__(schema)
        self._parts = parts
        self._states = [self._state(part) for part in parts]
        self._tables: list[Table] = []
        for place in range(len(parts)):
            with _of_part(parts, place) as part:
                self._tables.append(part.open(schema, refuse_bad_lines=refuse_bad_lines))

    @property
    def rows(self) -> int | None:
        """Number of records, if every part knows its own."""
        counts = [table.rows for table in self._tables]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def columns(self, which: slice = ALL) -> Iterator[list[NDArray[np.float64]]]:
        for place, table in enumerate(self._tables):
            self._check_unchanged(place)
            with _of_part(self._parts, place):
                yield from table.columns(which)
            self._check_unchanged(place)

    def _check_unchanged(self, place: int) -> None:
        part = self._parts[place]
        if self._state(part) != self._states[place]:
            raise TableError(
                f"{Path(part.name).name} has changed since it was opened: nothing is released. A "
                "cost that was debited stays debited. Make a copy that no program writes to, and "
                "pass that"
            )

    @staticmethod
    def _state(part: Part) -> State:
        try:
            return part.state()
        except OSError:
            return ()


@contextmanager
def _of_part(parts: Sequence[Part], place: int) -> Iterator[Part]:
    """Yield a part; an error of a table of several parts says which one it is of."""
    part = parts[place]
    try:
        yield part
    except TableError as error:
        if len(parts) == 1:
            raise
        text = f"{error} (part {place + 1} of {len(parts)}: {part.name})"
        raise TableError(text) from None
