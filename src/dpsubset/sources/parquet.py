"""Parquet files, a batch of rows at a time: memory does not grow with the file.

Text may be folded in many ways: a few kilobytes of a file may stand for gigabytes. It is read as a
dictionary where that stays small, and else a few rows at a time. What cannot be bounded here is a
page of the file, which pyarrow decompresses as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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

#: Chunks of text (columns of a row group) of at most this many bytes together are read as
#: dictionaries, which hold each value once. Larger ones would take several times their size, and
#: beyond 2**31 bytes there is no such dictionary.
_FOLDED = 2**26

#: Rows of a batch where a chunk is larger, and each value stands in the file once.
_FEW_ROWS = 2**10

#: Encodings in which a value does so, so that what the file states is what it takes in memory ...
_EACH_ONCE = {"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY"}
#: ... and those that pyarrow cannot read as a dictionary.
_NO_DICTIONARY = {"DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"}


@dataclass(frozen=True)
class _Part:
    """Row groups that are read alike, and one after another: a batch may be of several."""

    groups: tuple[int, ...]
    #: Rows of a batch.
    rows: int
    #: Columns read as dictionaries, and their size: pyarrow makes one of those of all groups.
    folded: tuple[str, ...]
    size: int

    def with_next(self, other: _Part) -> _Part | None:
        """Both as one, if they go together."""
        size = self.size + other.size
        if (self.rows, self.folded) != (other.rows, other.folded) or size > _FOLDED:
            return None
        return replace(self, groups=self.groups + other.groups, size=size)


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
            self._parts = _plan(file, self._names)
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
        for part in self._parts:
            with _open(self._path, part.folded) as file:
                try:
                    for batch in file.iter_batches(part.rows, list(part.groups), self._names):
                        columns = [batch.column(name) for name in self._names]
                        *x, y = map(from_arrow, columns, self._readers)
                        yield np.column_stack(x), y
                        done += batch.num_rows
                        if progress:
                            progress(done / self._rows)
                except (pa.ArrowException, OSError):
                    raise TableError(f"{self._path.name} is damaged and cannot be read") from None


def _plan(file: pq.ParquetFile, names: Sequence[str]) -> list[_Part]:
    """How much of each row group is read at a time, so that memory stays bounded."""
    kinds, metadata = file.schema_arrow, file.metadata
    places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    texts = [name for name in names if _holds_text(kinds.field(name).type)]
    parts: list[_Part] = []
    for group in range(metadata.num_row_groups):
        rows, folded, held = batch_rows(len(names)), [], 0
        for name in texts:
            chunk = metadata.row_group(group).column(places[name])
            size, encodings = chunk.total_uncompressed_size, set(chunk.encodings)
            if held + size <= _FOLDED and not encodings & _NO_DICTIONARY:
                folded.append(name)
                held += size
            elif encodings <= _EACH_ONCE:
                rows = rows if size <= _FOLDED else min(rows, _FEW_ROWS)
            else:  # a value may stand for any number of cells, and is at most as long as the chunk
                rows = min(rows, max(1, _FOLDED // max(1, size)))
        part = _Part((group,), rows, tuple(folded), held)
        merged = parts[-1].with_next(part) if parts else None
        if merged:
            parts[-1] = merged
        else:
            parts.append(part)
    return parts


def _holds_text(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _open(path: Path, folded: Sequence[str] = ()) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(
            path, pre_buffer=False, buffer_size=_BUFFER, read_dictionary=list(folded)
        )
    except (pa.ArrowException, OSError):
        raise TableError(f"{path.name} is not a Parquet file") from None
