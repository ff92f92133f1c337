"""Datasets of pyarrow.dataset: their files, read as other files are, with their partition columns.

Arrow's own scan is not used. It casts the cells of a file to the types of the dataset, which may
fail because of one cell, and with its defaults it holds much of a table in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...base.errors import TableError
from ...schema.schema import AnySchema, Column, FeatureSchema, Schema
from . import ALL, Source, Table
from .arrow import from_arrow
from .cells import reader
from .files import FileFormat, cells_of_format, check_unique, open_format, types_of_format
from .frames import FrameTable
from .header import check_columns, check_types
from .parts import Part, State
from .paths import check_once


def parts_of_dataset(dataset: Any) -> Sequence[Part]:
    """Return the fragments of a dataset; an error if it has others than whole typed files."""
    import pyarrow.dataset as arrow

    parts: list[Part] = []
    for each in _leaves(dataset, arrow):
        fragments = _fragments(each)
        if issubclass(type(each), arrow.InMemoryDataset):
            parts.append(HeldPart(each.to_table()))
        elif issubclass(type(each), arrow.FileSystemDataset):
            parts += [FragmentPart(fragment, arrow) for fragment in fragments]
        else:
            raise TableError(f"a dataset of type {type(each).__name__} is not read")
    if not parts:
        raise TableError("this dataset has no files")
    files = [part.source for part in parts if isinstance(part, FragmentPart)]
    check_once([source for source in files if isinstance(source, Path)])
    elsewhere = [source.name for source in files if not isinstance(source, Path)]
    if len(set(elsewhere)) < len(elsewhere):
        raise TableError("this dataset has a file twice, and its rows would count twice")
    return parts


def _leaves(dataset: Any, arrow: Any) -> Iterator[Any]:
    if issubclass(type(dataset), arrow.UnionDataset):
        _fragments(dataset)
        for child in dataset.children:
            yield from _leaves(child, arrow)
    else:
        yield dataset


def _fragments(dataset: Any) -> list[Any]:
    try:
        return list(dataset.get_fragments())
    except ValueError:
        filtered = True  # Arrow's error may quote the filter
    except (pa.ArrowException, OSError):
        filtered = False
    if not filtered:
        raise TableError("the files of this dataset cannot be listed")
    raise TableError(
        "a filtered dataset is not read: its filter is computed for each record, and could fail "
        "because of one. Pass the dataset without the filter, or write the rows that it selects "
        "to a Parquet file"
    )


class _Remote:
    """A file of any of Arrow's file systems, or in a buffer."""

    def __init__(self, fragment: Any) -> None:
        self._fragment = fragment
        self.name = str(fragment.path or f"buffer {id(fragment.buffer)}")

    def open(self) -> pa.NativeFile:
        return self._fragment.open()


class FragmentPart:
    """A file of a dataset, with the values of its partition columns."""

    def __init__(self, fragment: Any, arrow: Any) -> None:
        from pyarrow.fs import LocalFileSystem

        self._fragment = fragment
        # A local file is opened by its path: never memory-mapped, whatever the file system says.
        local = fragment.buffer is None and issubclass(type(fragment.filesystem), LocalFileSystem)
        self.source: Source = Path(fragment.path) if local else _Remote(fragment)
        if issubclass(type(fragment.format), arrow.ParquetFileFormat):
            self._form = FileFormat("parquet")
        elif issubclass(type(fragment.format), arrow.IpcFileFormat):
            self._form = FileFormat("arrow")
        else:
            kind = type(fragment.format).__name__.removesuffix("FileFormat").upper()
            raise TableError(
                f"a dataset of {kind} files is not read: Arrow may take the types of columns "
                "from some of their cells. Pass the paths of the files, dataset.files, if they are "
                "of a kind that is read by itself (CSV), or write the table to Parquet files"
            )
        self._constants: dict[str, Any] = arrow.get_partition_keys(fragment.partition_expression)

    @property
    def name(self) -> str:
        return str(self.source) if isinstance(self.source, Path) else self.source.name

    def types(self) -> pa.Schema:
        held = types_of_format(self.source, self._form)
        assert held is not None
        return pa.schema([*held, *(pa.field(name, array.type) for name, array in self._arrays())])

    def header(self, separator: str | None) -> list[str]:
        names = self.names(separator)
        check_unique(names, Path(self.name).name)
        return names

    def names(self, separator: str | None) -> list[str]:
        return list(self.types().names)

    def open(self, schema: AnySchema, *, refuse_bad_lines: bool) -> Table:
        self._check_whole()
        if not self._constants:
            return open_format(self.source, self._form, schema)
        types, what = self.types(), Path(self.name).name
        check_columns(types.names, schema, what)
        inner = [column for column in schema.columns_read if column.name not in self._constants]
        if not inner:
            raise TableError(
                "every declared column is a partition column: declare at least one column of the "
                "files, from which their rows are counted"
            )
        constant = [column for column in schema.columns_read if column.name in self._constants]
        check_types(types, [c.name for c in constant], [reader(c) for c in constant], what)
        part = FeatureSchema(tuple(inner), schema.bad_cells, schema.separator)
        values = {column.name: self._value(column) for column in constant}
        return PartitionTable(open_format(self.source, self._form, part), schema, values)

    def cells(self, schema: Schema, rows: int) -> list[list[Any]]:
        names = [column.name for column in schema.columns_read]
        inner = [name for name in names if name not in self._constants]
        found = cells_of_format(self.source, self._form, inner, rows)
        by_name = (dict(zip(inner, row, strict=True)) | self._constants for row in found)
        return [[row[name] for name in names] for row in by_name]

    def state(self) -> State:
        if self._fragment.buffer is not None:
            return None
        if isinstance(self.source, Path):
            stat = self.source.stat()
            return stat.st_size, stat.st_mtime_ns, stat.st_ino
        info = self._fragment.filesystem.get_file_info(self._fragment.path)
        return int(info.size or 0), int(info.mtime_ns or 0)

    def _arrays(self) -> list[tuple[str, pa.Array]]:
        return [(name, pa.array([value])) for name, value in self._constants.items()]

    def _value(self, column: Column) -> float:
        return float(from_arrow(pa.array([self._constants[column.name]]), reader(column))[0])

    def _check_whole(self) -> None:
        """Refuse a fragment of some row groups of a file, since the file is read as a whole."""
        if self._form.name != "parquet":
            return
        subset = self._fragment.num_row_groups
        metadata = self._fragment.metadata
        if subset != metadata.num_row_groups:
            raise TableError(
                f"{Path(self.name).name} is in this dataset with some of its row groups only: make "
                "a dataset of whole files"
            )


class PartitionTable(Table):
    """A file with columns that are constant in it."""

    def __init__(self, inner: Table, schema: AnySchema, values: Mapping[str, float]) -> None:
        super().__init__(schema)
        self._inner, self._values = inner, values
        self._names = [column.name for column in schema.columns_read]

    @property
    def rows(self) -> int | None:
        return self._inner.rows

    def columns(self, which: slice = ALL) -> Iterator[list[NDArray[np.float64]]]:
        wanted = self._names[which]
        held = [name for name in self._names if name not in self._values]
        places = [held.index(name) for name in wanted if name in held]
        # ``which`` is a range of columns in order, and so are those of the file among them. If
        # there are none, one column is read for the number of its rows.
        inner = slice(places[0], places[-1] + 1) if places else slice(0, 1)
        for batch in self._inner.columns(inner):
            rows, cells = len(batch[0]), iter(batch)
            yield [
                np.full(rows, self._values[name]) if name in self._values else next(cells)
                for name in wanted
            ]


class HeldPart:
    """The rows of a dataset in memory."""

    name = "rows in memory"

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def types(self) -> pa.Schema:
        return self._table.schema

    def header(self, separator: str | None) -> list[str]:
        return list(self._table.column_names)

    names = header

    def open(self, schema: AnySchema, *, refuse_bad_lines: bool) -> Table:
        return FrameTable(self._table, schema)

    def cells(self, schema: Schema, rows: int) -> list[list[Any]]:
        names = [column.name for column in schema.columns_read]
        return [[row[name] for name in names] for row in self._table.slice(0, rows).to_pylist()]

    def state(self) -> State:
        return None
