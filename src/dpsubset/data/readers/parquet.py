"""Parquet files, read in batches of rows, so that memory does not grow with the file.

Encodings can compress text so much that a few kilobytes of a file stand for gigabytes. Text columns
are read as dictionaries if these are small enough together, and otherwise one column and few rows
at a time. One thing is not bounded: pyarrow decompresses a page of the file as a whole.
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
from ...schema.schema import AnySchema
from . import ALL, Source, Table, batch_rows
from .arrow import from_arrow, is_text
from .cells import Reader, readers
from .header import check_columns, check_types

#: Bytes of each column that pyarrow buffers. Without a buffer it holds whole row groups, and with
#: its default of reading ahead it ends up holding the whole file.
_BUFFER = 2**16

#: Largest total size of text chunks, as stated by the file, that are read together as dictionaries.
#: A dictionary takes several times that, and cannot exceed 2**31 bytes.
_MAX_DICTIONARIES = 2**26

#: Largest size of a text chunk that is read as a dictionary by itself.
_MAX_DICTIONARY = 2**27

#: Rows of a batch for a larger chunk in which each value is stored once.
_FEW_ROWS = 2**10

#: Encodings that store each value once: the stated size is then the size in memory.
_EACH_ONCE = {"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY"}
#: Encodings that pyarrow cannot read as a dictionary.
_NO_DICTIONARY = {"DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"}


@dataclass(frozen=True)
class _Part:
    """Consecutive row groups that are read together.

    ``dictionaries`` are the columns that are read as dictionaries, with ``size`` bytes in all,
    since pyarrow merges those of all groups; ``alone`` are text columns that are read one at a
    time.
    """

    groups: tuple[int, ...]
    dictionaries: tuple[str, ...]
    size: int
    alone: tuple[str, ...] = ()

    def with_next(self, other: _Part) -> _Part | None:
        """Both as one part, if they can be read together."""
        size = self.size + other.size
        if self.alone or other.alone or self.dictionaries != other.dictionaries:
            return None
        if size > _MAX_DICTIONARIES:
            return None
        return replace(self, groups=self.groups + other.groups, size=size)


class ParquetTable(Table):
    """A Parquet file whose columns have been checked against a schema."""

    def __init__(self, path: Source, schema: AnySchema) -> None:
        super().__init__(schema)
        self._path = path
        self._names = [column.name for column in schema.columns_read]
        with open_parquet(path) as file:
            types = file.schema_arrow
            check_columns(types.names, schema, path.name)
            check_types(types, self._names, readers(schema), path.name)
            self._rows = int(file.metadata.num_rows)
        self._readers: dict[str, Reader] = dict(zip(self._names, readers(schema), strict=True))

    @property
    def rows(self) -> int:
        return self._rows

    def columns(self, which: slice = ALL) -> Iterator[list[NDArray[np.float64]]]:
        """Batches of some columns. Other columns are not read from the file."""
        names = self._names[which]
        try:
            with open_parquet(self._path) as file:
                parts = _plan_parts(file, names)
            for part in parts:
                yield from self._part_columns(names, part)
        except (pa.ArrowException, OSError):
            raise TableError(f"{self._path.name} is damaged and cannot be read") from None

    def _part_columns(
        self, names: Sequence[str], part: _Part
    ) -> Iterator[list[NDArray[np.float64]]]:
        step = batch_rows(len(names))
        whole = self._read_alone(part)
        others = [name for name in names if name not in whole]
        if not others:
            rows = len(whole[part.alone[0]])
            for start in range(0, rows, step):
                yield [whole[name][start : start + step] for name in names]
            return
        start = 0
        with open_parquet(self._path, part.dictionaries) as file:
            for batch in file.iter_batches(step, list(part.groups), others):
                stop = start + batch.num_rows
                found = dict(zip(batch.schema.names, batch.columns, strict=True))
                yield [
                    whole[name][start:stop]
                    if name in whole
                    else from_arrow(found[name], self._readers[name])
                    for name in names
                ]
                start = stop

    def _read_alone(self, part: _Part) -> dict[str, NDArray[np.float64]]:
        """The text columns of a row group that are read one at a time."""
        if not part.alone:
            return {}
        (group,) = part.groups
        # The file is opened once for all of them, since that takes time for each of its columns.
        with open_parquet(self._path) as file:
            chunks = dict(zip(part.alone, _chunks(file, group, part.alone), strict=True))
        folded = [name for name, chunk in chunks.items() if _fits_dictionary(chunk)]
        with open_parquet(self._path, folded) as file:
            return {name: self._read_text(file, group, name, chunks[name]) for name in part.alone}

    def _read_text(
        self, file: pq.ParquetFile, group: int, name: str, chunk: _Chunk
    ) -> NDArray[np.float64]:
        """One text column of a row group, in batches small enough for memory."""
        size, encodings = chunk
        rows = batch_rows(1)
        if not _fits_dictionary(chunk) and not encodings <= _EACH_ONCE:
            # Many cells may share one value, which is at most as long as the chunk.
            rows = min(rows, max(1, _MAX_DICTIONARY // max(1, size)))
        elif size > _MAX_DICTIONARY:
            rows = min(rows, _FEW_ROWS)
        batches = file.iter_batches(rows, [group], [name])
        parts = [from_arrow(batch.column(name), self._readers[name]) for batch in batches]
        return np.concatenate([np.empty(0), *parts])


def _plan_parts(file: pq.ParquetFile, names: Sequence[str]) -> list[_Part]:
    """Choose how to read each row group, so that memory stays bounded."""
    # Converted once: each access converts the types of all columns.
    types = file.schema_arrow
    texts = [name for name in names if _holds_text(types.field(name).type)]
    parts: list[_Part] = []
    for group in range(file.metadata.num_row_groups):
        chunks = _chunks(file, group, texts)
        total = sum(size for size, _ in chunks)
        if total > _MAX_DICTIONARIES or any(encodings & _NO_DICTIONARY for _, encodings in chunks):
            part = _Part((group,), (), 0, tuple(texts))
        else:
            part = _Part((group,), tuple(texts), total)
        merged = parts[-1].with_next(part) if parts else None
        if merged:
            parts[-1] = merged
        else:
            parts.append(part)
    return parts


#: Size of a column chunk before compression, in bytes, and its encodings.
_Chunk = tuple[int, set[str]]


def _chunks(file: pq.ParquetFile, group: int, names: Sequence[str]) -> list[_Chunk]:
    schema, columns = file.metadata.schema, file.metadata.row_group(group)
    places = {schema.column(i).path: i for i in range(len(schema))} if names else {}
    chunks = [columns.column(places[name]) for name in names]
    return [(chunk.total_uncompressed_size, set(chunk.encodings)) for chunk in chunks]


def _fits_dictionary(chunk: _Chunk) -> bool:
    """Whether a text chunk is read as a dictionary by itself."""
    size, encodings = chunk
    return size <= _MAX_DICTIONARY and not encodings & _NO_DICTIONARY


def _holds_text(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def open_parquet(path: Source, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a file; the columns in ``dictionaries`` are read as dictionaries."""
    try:
        source = path if isinstance(path, Path) else path.open()
        return pq.ParquetFile(
            source, pre_buffer=False, buffer_size=_BUFFER, read_dictionary=list(dictionaries)
        )
    except (pa.ArrowException, OSError):
        raise TableError(f"{path.name} is not a Parquet file, or it is damaged") from None
