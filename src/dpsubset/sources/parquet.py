"""Parquet files, a batch of rows at a time: memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import TableError
from ..moments import Block
from ..schema import Schema
from . import Progress, batch_rows
from .cells import from_arrow, is_readable, reader
from .header import check_columns

#: Bytes of each column held at a time. Without it pyarrow holds whole row groups, and with its
#: default of reading ahead it ends up holding the whole file.
_BUFFER = 2**16


class ParquetTable:
    """A Parquet file whose columns have been checked against a schema."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self._path = path
        self._names = [*schema.feature_names, schema.response.name]
        with _open(path) as file:
            kinds = file.schema_arrow
            self._rows = int(file.metadata.num_rows)
            check_columns(list(kinds.names), schema, path.name)
            for name in self._names:
                kind = kinds.field(name).type
                if not is_readable(kind):
                    # Without what stands in <>: a nested type lists its fields there.
                    bare = str(kind).partition("<")[0]
                    raise TableError(
                        f"{path.name}: column {name!r} holds {bare}, which is no number: convert "
                        "it, or give it the role 'ignored'"
                    )
        self._read = reader(schema.response)

    @staticmethod
    def header(path: Path) -> list[str]:
        """Column names."""
        with _open(path) as file:
            return list(file.schema_arrow.names)

    @property
    def rows(self) -> int:
        """Number of records."""
        return self._rows

    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """Batches of rows."""
        with _open(self._path) as file:
            total, done = self._rows, 0
            step = batch_rows(len(self._names))
            try:
                for batch in file.iter_batches(step, columns=self._names):
                    *columns, response = (batch.column(name) for name in self._names)
                    x = np.column_stack([from_arrow(column) for column in columns])
                    yield x, self._read.from_arrow(response)
                    done += batch.num_rows
                    if progress:
                        progress(done / total)
            except (pa.ArrowException, OSError):
                raise TableError(f"{self._path.name} is damaged and cannot be read") from None


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER)
    except (pa.ArrowException, OSError):
        raise TableError(f"{path.name} is not a Parquet file") from None
