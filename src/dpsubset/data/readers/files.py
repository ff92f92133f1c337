"""Files: which reader reads a file, by the extension of its name."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from ...base.errors import TableError
from ...schema.schema import AnySchema, Schema
from . import Source, Table
from .arrow_files import ArrowTable, arrow_batches, arrow_schema
from .delimited import DelimitedTable
from .header import looks_like_a_value, other_separator
from .other_kinds import is_file, message_of_path
from .parquet import ParquetTable, open_parquet

#: The content of a file, by its extension: a format, or the separator of a text table.
_ENDINGS = {
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".csv": ",", ".tsv": "\t", ".txt": ",",
}  # fmt: skip
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


#: Extensions of bounds files.
BOUNDS_FILES = (".yaml", ".yml", ".json")


def is_table_path(path: Path) -> bool:
    """Return whether a path has the extension of a table."""
    return any(suffix.lower() in _ENDINGS for suffix in path.suffixes[-2:])


class FileFormat(NamedTuple):
    """Format of a file; separator and compression are those of a text file."""

    name: Literal["parquet", "arrow", "text"]
    separator: str = ","
    compression: str | None = None


def file_format(path: Path, separator: str | None = None) -> FileFormat:
    """Return the format of a file by its extension; a declared ``separator`` has priority."""
    if not is_file(path):
        raise TableError(message_of_path(path))
    *others, last = [suffix.lower() for suffix in path.suffixes] or [""]
    compression = _COMPRESSIONS.get(last)
    found = _ENDINGS.get(others[-1] if compression and others else last)
    if found == "parquet" and compression is None:
        return FileFormat("parquet")
    if found == "arrow" and compression is None:
        return FileFormat("arrow")
    if last in BOUNDS_FILES:
        raise TableError(f"{path.name} has the extension of a bounds file: pass the table first")
    if found is None or len(found) > 1:
        raise TableError(
            f"{path.name}: the extension must be .parquet, .feather, .arrow, .csv or .tsv (.csv "
            "and .tsv may be compressed: .gz, .bz2, .zst)"
        )
    return FileFormat("text", separator or found, compression)


def open_file(path: Path, schema: AnySchema, *, refuse_bad_lines: bool = False) -> Table:
    """Open a file and check its columns.

    ``refuse_bad_lines`` is for predictions: a line of a text file that does not split into the
    columns of the header is then an error, not a record of missing cells.
    """
    form = file_format(path, schema.separator)
    if form.name == "text":
        return DelimitedTable(
            path, schema, delimiter=form.separator, compression=form.compression,
            refuse_bad_lines=refuse_bad_lines,
        )  # fmt: skip
    return open_format(path, form, schema)


def open_format(source: Source, form: FileFormat, schema: AnySchema) -> Table:
    """Open a file of a format with types, which may be in another file system."""
    kind = ParquetTable if form.name == "parquet" else ArrowTable
    return kind(source, schema)


def file_types(path: Path) -> pa.Schema | None:
    """Names and types of a file's columns; None for text files, which have no types."""
    return types_of_format(path, file_format(path))


def types_of_format(source: Source, form: FileFormat) -> pa.Schema | None:
    """The same for a file of any file system."""
    if form.name == "parquet":
        with open_parquet(source) as file:
            return file.schema_arrow
    return arrow_schema(source) if form.name == "arrow" else None


def file_cells(path: Path, schema: Schema, rows: int) -> list[list[Any]]:
    """Raw cells of a file's first rows, the response last. NOT PRIVATE."""
    form = file_format(path, schema.separator)
    if form.name == "text":
        table = open_file(path, schema)
        assert isinstance(table, DelimitedTable)
        return table.texts(rows)
    return cells_of_format(path, form, [column.name for column in schema.columns_read], rows)


def cells_of_format(
    source: Source, form: FileFormat, names: list[str], rows: int
) -> list[list[Any]]:
    """Raw cells of the first rows of a file of a format with types. NOT PRIVATE."""
    if form.name == "arrow":
        batches = (batch.select(names) for batch in arrow_batches(source))
        parts = [batch.slice(0, rows).to_pylist() for batch in islice(batches, rows)]
    else:
        with open_parquet(source) as file:
            parts = [
                batch.to_pylist() for batch in islice(file.iter_batches(rows, columns=names), rows)
            ]
    return [[row[name] for name in names] for part in parts for row in part][:rows]


def first_line(path: Path, separator: str | None = None) -> list[str]:
    """Column names; of a text file the first line, which may be a record."""
    form = file_format(path, separator)
    if form.name == "text":
        return DelimitedTable.header(path, form.separator, form.compression)
    types = file_types(path)
    assert types is not None
    return list(types.names)


def header(path: str | Path, separator: str | None = None) -> list[str]:
    """Column names of a file. Reads no row, and refuses a first line that may be a record."""
    path = Path(path)
    names = first_line(path, separator)
    if separator is None and (hint := other_separator(names)):
        raise TableError(f"{path.name}: {hint}")
    check_unique(names, path.name)
    if file_format(path).name == "text" and any(map(looks_like_a_value, names)):
        raise TableError(
            f"{path.name}: the first line looks like data, not like column names. "
            "Add a header line first"
        )
    return names


def check_unique(names: list[str], what: str) -> None:
    """Refuse a file with several columns of one name."""
    if len(set(names)) < len(names):
        raise TableError(f"{what} has several columns of one name: names must be unique")
