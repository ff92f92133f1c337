"""Parquet files, a batch of rows at a time: memory does not grow with the file.

Text may be folded in many ways: a few kilobytes of a file may stand for gigabytes. It is read as
dictionaries where these stay small together, and else a column and a few rows at a time. What
cannot be bounded here is a page of the file, which pyarrow decompresses as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...base.errors import TableError
from ...schema.schema import Schema
from ..moments import Block
from . import batch_rows
from .arrow import from_arrow, is_readable, is_text
from .cells import Reader, readers
from .columns import unreadable
from .header import check_columns

#: Bytes of each column held at a time. Without it pyarrow holds whole row groups, and with its
#: default of reading ahead it ends up holding the whole file.
_BUFFER = 2**16

#: Bytes of text, as the file states them, that are read at a time as dictionaries, which hold each
#: value once. More would take several times that, and beyond 2**31 bytes there is no dictionary.
_FOLDED = 2**26

#: The same for a column that is read alone.
_FOLDED_ALONE = 2**27

#: Rows of a batch where a chunk is larger, and each value stands in the file once.
_FEW_ROWS = 2**10

#: Encodings in which a value does so, so that what the file states is what it takes in memory ...
_EACH_ONCE = {"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY"}
#: ... and those that pyarrow cannot read as a dictionary.
_NO_DICTIONARY = {"DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"}


@dataclass(frozen=True)
class _Part:
    """Row groups that are read one after another: a batch may be of several."""

    groups: tuple[int, ...]
    #: Columns read as dictionaries, and their size: pyarrow makes one of those of all groups.
    folded: tuple[str, ...]
    size: int
    #: Columns of text that are too large to be read beside each other.
    alone: tuple[str, ...] = ()

    def with_next(self, other: _Part) -> _Part | None:
        """Both as one, if they go together."""
        size = self.size + other.size
        if self.alone or other.alone or self.folded != other.folded or size > _FOLDED:
            return None
        return replace(self, groups=self.groups + other.groups, size=size)


class ParquetTable:
    """A Parquet file whose columns have been checked against a schema."""

    def __init__(self, path: Path, schema: Schema, *, beside: bool = False) -> None:
        self._path = path
        self._names = [*schema.feature_names, *([] if beside else [schema.response.name])]
        self._beside = beside
        self._readers: dict[str, Reader] = dict(zip(self._names, readers(schema), strict=False))
        with _open(path) as file:
            kinds = file.schema_arrow
            self._rows = int(file.metadata.num_rows)
            check_columns(list(kinds.names), schema, path.name, beside)
            for name in self._names:
                kind = kinds.field(name).type
                takes = self._readers[name].takes
                if not is_readable(kind, takes):
                    # Without what stands in <>: a nested type lists its fields there.
                    bare = str(kind).partition("<")[0]
                    raise TableError(
                        f"{path.name}: column {name!r} holds {bare}, {unreadable(takes)}"
                    )
            self._parts = _plan(file, self._names)
            self._response_parts = _plan(file, self._names[-1:])

    @staticmethod
    def header(path: Path) -> list[str]:
        """Column names."""
        with _open(path) as file:
            return list(file.schema_arrow.names)

    @property
    def rows(self) -> int:
        """Number of records."""
        return self._rows

    def blocks(self) -> Iterator[Block]:
        """Batches of rows."""
        for columns in self._batches(self._names, self._parts):
            if self._beside:
                columns.append(np.full(len(columns[0]), np.nan))
            *x, y = columns
            yield np.column_stack(x), y

    def responses(self) -> Iterator[NDArray[np.float64]]:
        """Batches of one column: a file of columns need not be read for the others."""
        for (y,) in self._batches(self._names[-1:], self._response_parts):
            yield y

    def _batches(
        self, names: Sequence[str], parts: Sequence[_Part]
    ) -> Iterator[list[NDArray[np.float64]]]:
        """Some columns of the whole file, in batches of rows."""
        for part in parts:
            try:
                yield from self._columns(names, part)
            except (pa.ArrowException, OSError):
                raise TableError(f"{self._path.name} is damaged and cannot be read") from None

    def _columns(self, names: Sequence[str], part: _Part) -> Iterator[list[NDArray[np.float64]]]:
        """The same of a part."""
        step = batch_rows(len(names))
        whole = {name: self._read_alone(name, part) for name in part.alone}
        beside = [name for name in names if name not in whole]
        if not beside:
            rows = len(whole[part.alone[0]])
            for start in range(0, rows, step):
                yield [whole[name][start : start + step] for name in names]
            return
        start = 0
        with _open(self._path, part.folded) as file:
            for batch in file.iter_batches(step, list(part.groups), beside):
                stop = start + batch.num_rows
                yield [
                    whole[name][start:stop]
                    if name in whole
                    else from_arrow(batch.column(name), self._readers[name])
                    for name in names
                ]
                start = stop

    def _read_alone(self, name: str, part: _Part) -> NDArray[np.float64]:
        """One column of text of a row group, as many rows at a time as memory has room for."""
        (group,) = part.groups
        with _open(self._path) as file:
            ((size, encodings),) = _chunks(file, group, [name])
        rows, folded = batch_rows(1), size <= _FOLDED_ALONE and not encodings & _NO_DICTIONARY
        if not folded and not encodings <= _EACH_ONCE:
            # A value may stand for any number of cells, and is at most as long as the chunk.
            rows = min(rows, max(1, _FOLDED_ALONE // max(1, size)))
        elif size > _FOLDED_ALONE:
            rows = min(rows, _FEW_ROWS)
        with _open(self._path, [name] if folded else []) as file:
            batches = file.iter_batches(rows, [group], [name])
            parts = [from_arrow(batch.column(name), self._readers[name]) for batch in batches]
        return np.concatenate([np.empty(0), *parts])


def _plan(file: pq.ParquetFile, names: Sequence[str]) -> list[_Part]:
    """How each row group is read, so that memory stays bounded."""
    texts = [name for name in names if _holds_text(file.schema_arrow.field(name).type)]
    parts: list[_Part] = []
    for group in range(file.metadata.num_row_groups):
        chunks = _chunks(file, group, texts)
        total = sum(size for size, _ in chunks)
        if total > _FOLDED or any(encodings & _NO_DICTIONARY for _, encodings in chunks):
            part = _Part((group,), (), 0, tuple(texts))
        else:
            part = _Part((group,), tuple(texts), total)
        merged = parts[-1].with_next(part) if parts else None
        if merged:
            parts[-1] = merged
        else:
            parts.append(part)
    return parts


#: Of a column in a row group: its bytes before compression, and its encodings.
_Chunk = tuple[int, set[str]]


def _chunks(file: pq.ParquetFile, group: int, names: Sequence[str]) -> list[_Chunk]:
    schema, columns = file.metadata.schema, file.metadata.row_group(group)
    places = {schema.column(i).path: i for i in range(len(schema))} if names else {}
    chunks = [columns.column(places[name]) for name in names]
    return [(chunk.total_uncompressed_size, set(chunk.encodings)) for chunk in chunks]


def _holds_text(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _open(path: Path, folded: Sequence[str] = ()) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(
            path, pre_buffer=False, buffer_size=_BUFFER, read_dictionary=list(folded)
        )
    except (pa.ArrowException, OSError):
        raise TableError(f"{path.name} is not a Parquet file") from None
