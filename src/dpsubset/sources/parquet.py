"""Parquet files, a batch of rows at a time: memory does not grow with the file.

Text may be folded in many ways: a few kilobytes of a file may stand for gigabytes. It is read as a
dictionary where pyarrow can, and never more rows of it at a time than memory has room for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import TableError
from ..moments import Block
from ..schema import Schema
from . import Progress, batch_rows
from .arrow import from_arrow, is_readable, is_text
from .cells import NUMBERS, reader
from .header import check_columns

#: Bytes of each column held at a time. Without it pyarrow holds whole row groups, and with its
#: default of reading ahead it ends up holding the whole file.
_BUFFER = 2**16

#: Bytes of text in a batch, where the file tells how much there is ...
_TEXT = 2**26
#: ... and rows of a batch where it does not.
_FEW_ROWS = 64

#: Encodings of text whose size, as the file states it, is what it takes in memory; dictionaries
#: too, if they are read as such ...
_STATED = {"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY"}
_DICTIONARY = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}
#: ... which pyarrow cannot do beside these.
_NO_DICTIONARY = {"DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"}


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
            self._folded, self._steps = _plan(file, self._names)
        self._readers = [*[NUMBERS] * len(schema.features), reader(schema.response)]

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
        done = 0
        with _open(self._path, self._folded) as file:
            try:
                for step, groups in self._steps:
                    for batch in file.iter_batches(step, groups, self._names):
                        columns = [batch.column(name) for name in self._names]
                        *x, y = map(from_arrow, columns, self._readers)
                        yield np.column_stack(x), y
                        done += batch.num_rows
                        if progress:
                            progress(done / self._rows)
            except (pa.ArrowException, OSError):
                raise TableError(f"{self._path.name} is damaged and cannot be read") from None


def _plan(
    file: pq.ParquetFile, names: Sequence[str]
) -> tuple[list[str], list[tuple[int, list[int]]]]:
    """Columns to be read as dictionaries; rows of a batch, and the row groups read so."""
    kinds, metadata, step = file.schema_arrow, file.metadata, batch_rows(len(names))
    groups = list(range(metadata.num_row_groups))
    places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    texts = [
        name for name in names
        if is_text(kind := kinds.field(name).type)
        or (pa.types.is_dictionary(kind) and is_text(kind.value_type))
    ]  # fmt: skip
    if not texts:
        return [], [(step, groups)]
    chunks = {
        name: [metadata.row_group(group).column(places[name]) for group in groups] for name in texts
    }
    folded = [
        name for name in texts
        if not any(_NO_DICTIONARY.intersection(chunk.encodings) for chunk in chunks[name])
    ]  # fmt: skip
    steps: list[tuple[int, list[int]]] = []
    for group in groups:
        rows = step
        for name in texts:
            chunk = chunks[name][group]
            stated = _STATED | _DICTIONARY if name in folded else _STATED
            if stated.issuperset(chunk.encodings):
                size = max(1, chunk.total_uncompressed_size)
                rows = min(rows, max(1, metadata.row_group(group).num_rows * _TEXT // size))
            else:
                rows = min(rows, _FEW_ROWS)
        if steps and steps[-1][0] == rows:
            steps[-1][1].append(group)
        else:
            steps.append((rows, [group]))
    return folded, steps


def _open(path: Path, folded: Sequence[str] = ()) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(
            path, pre_buffer=False, buffer_size=_BUFFER, read_dictionary=list(folded)
        )
    except (pa.ArrowException, OSError):
        raise TableError(f"{path.name} is not a Parquet file") from None
