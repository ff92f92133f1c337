"""Files: which reader goes with which ending."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from ...base.errors import TableError
from ...schema.schema import Schema
from . import Table
from .delimited import DelimitedTable
from .header import looks_like_a_value, other_separator
from .parquet import ParquetTable

_PARQUET = {".parquet", ".pq"}
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def _kind(path: Path, separator: str | None = None) -> tuple[str, str | None]:
    """("parquet", None), or a delimiter, the declared one if there is one, and a compression."""
    if not path.is_file():
        raise TableError(f"there is no file {path.name}")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _PARQUET:
        return "parquet", None
    compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    ending = suffixes[-2] if compression and len(suffixes) > 1 else (suffixes or [""])[-1]
    if ending not in _DELIMITERS:
        raise TableError(
            f"{path.name}: the ending must be .parquet, .csv or .tsv (.csv and .tsv may be "
            "compressed: .gz, .bz2, .zst)"
        )
    return separator or _DELIMITERS[ending], compression


def open_file(path: Path, schema: Schema, *, beside: bool = False) -> Table:
    """Open a Parquet or delimited file and check its header.

    The response may be ``beside`` the file, which then need not have it: it is missing everywhere.
    That is for predictions, so that a line which is no row of the table is refused.
    """
    kind, compression = _kind(path, schema.separator)
    if kind == "parquet":
        return ParquetTable(path, schema, beside=beside)
    return DelimitedTable(path, schema, delimiter=kind, compression=compression, beside=beside)


def file_cells(path: Path, schema: Schema, rows: int) -> list[list[Any]]:
    """The cells of a file's first rows as they are, the response last. NOT PRIVATE."""
    kind, _ = _kind(path, schema.separator)
    if kind != "parquet":
        table = open_file(path, schema)
        assert isinstance(table, DelimitedTable)
        return table.texts(rows)
    import pyarrow.parquet as pq

    names = [*schema.feature_names, schema.response.name]
    with pq.ParquetFile(path) as file:
        parts = [
            batch.to_pylist() for batch in islice(file.iter_batches(rows, columns=names), rows)
        ]
    return [[row[name] for name in names] for part in parts for row in part][:rows]


def first_line(path: Path, separator: str | None = None) -> list[str]:
    """What stands where column names do; in a text file it may be a record."""
    kind, compression = _kind(path, separator)
    if kind == "parquet":
        return ParquetTable.header(path)
    return DelimitedTable.header(path, kind, compression)


def header(path: str | Path, separator: str | None = None) -> list[str]:
    """The column names of a file; reads no row."""
    path = Path(path)
    names = first_line(path, separator)
    if separator is None and (hint := other_separator(names)):
        raise TableError(f"{path.name}: {hint}")
    if len(set(names)) < len(names):
        raise TableError(f"{path.name} has several columns of one name: names must be unique")
    if _kind(path)[0] != "parquet" and any(map(looks_like_a_value, names)):
        raise TableError(
            f"{path.name}: the first line looks like data, not like column names. "
            "Add a header line first"
        )
    return names
