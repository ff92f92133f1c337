"""Arrow files, which Feather files are, and Arrow streams: one record batch at a time.

A batch is decompressed as a whole, so memory grows with the largest batch of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...base.errors import TableError
from ...schema.schema import AnySchema
from . import ALL, Source, Table, batch_rows
from .arrow import from_arrow
from .cells import readers
from .header import check_columns, check_types


class ArrowTable(Table):
    """An Arrow file whose columns have been checked against a schema."""

    def __init__(self, path: Source, schema: AnySchema) -> None:
        super().__init__(schema)
        self._path = path
        self._names = [column.name for column in schema.columns_read]
        self._readers = readers(schema)
        types = arrow_schema(path)
        check_columns(types.names, schema, path.name)
        check_types(types, self._names, self._readers, path.name)
        place_of = {name: place for place, name in enumerate(types.names)}
        self._places = [place_of[name] for name in self._names]

    @property
    def rows(self) -> None:
        """Number of records: not known before they are read."""
        return

    def columns(self, which: slice = ALL) -> Iterator[list[NDArray[np.float64]]]:
        """Batches of some columns."""
        places, readers = self._places[which], self._readers[which]
        step = batch_rows(len(places))
        for batch in arrow_batches(self._path):
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                yield [
                    from_arrow(part.column(place), read)
                    for place, read in zip(places, readers, strict=True)
                ]


def arrow_schema(path: Source) -> pa.Schema:
    with _opened(path) as reader:
        return reader.schema


def arrow_batches(path: Source) -> Iterator[pa.RecordBatch]:
    with _opened(path) as reader:
        if isinstance(reader, pa.ipc.RecordBatchFileReader):
            yield from map(reader.get_batch, range(reader.num_record_batches))
        else:
            yield from reader


@contextmanager
def _opened(path: Source) -> Iterator[Any]:
    try:
        # Not memory-mapped: a file that is cut short while it is read must be an error, no signal.
        file = pa.OSFile(str(path)) if isinstance(path, Path) else path.open()
        with file as source:
            if source.read(4) == b"FEA1":
                raise TableError(
                    f"{path.name} is a Feather file of version 1, which is outdated: write it anew "
                    "by pyarrow.feather.write_feather, or as Parquet"
                )
            source.seek(0)
            try:
                reader = pa.ipc.open_file(source)
            except pa.ArrowInvalid:
                source.seek(0)
                reader = pa.ipc.open_stream(source)
            yield reader
    except (pa.ArrowException, OSError):
        # Its own message may quote the file.
        raise TableError(f"{path.name} is not an Arrow file, or it is damaged") from None
