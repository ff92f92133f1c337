"""Delimited text (CSV, TSV), a piece of the file at a time.

One line is one record, whatever it holds: where a record ends must not depend on another record, so
a newline always ends it, also inside quotes. A line that does not split into as many fields as the
header, or is longer than `LONGEST_LINE`, is a record whose cells are all unreadable. Blank lines
are not records. Nothing in a line can raise an error, and memory does not grow with its length.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...base.errors import TableError
from ...base.kernels.compiled import kernel
from ...schema.schema import Column, Schema
from ..moments import Block
from . import batch_rows
from .arrow import from_arrow, packed
from .cells import LONGEST_TEXT, readers
from .header import check_columns

#: Bytes read at a time.
_PIECE = 2**23

#: In bytes. A longer line is a record of unreadable cells.
LONGEST_LINE = 2**26

#: A first line longer than this is no header: the file is something else than a table.
LONGEST_HEADER = 2**24

#: A line that is none: its quote stays open.
_BAD_LINE = b'"\n'


class DelimitedTable:
    """A text file with a header line whose columns have been checked against a schema."""

    def __init__(
        self, path: Path, schema: Schema, *, delimiter: str, compression: str | None,
        piece: int = _PIECE, longest: int = LONGEST_LINE, beside: bool = False,
    ) -> None:  # fmt: skip
        self._path, self._delimiter, self._compression = path, delimiter, compression
        self._piece, self._longest = piece, longest
        names = self.header(path, delimiter, compression)
        check_columns(names, schema, path.name, beside)
        self._fields, self._beside = len(names), beside
        wanted = [*schema.feature_names, *([] if beside else [schema.response.name])]
        self._wanted = np.array([names.index(name) for name in wanted], dtype=np.int64)
        self._readers = readers(schema)
        self._quotes = [_has_quote(column) for column in (*schema.features, schema.response)]

    @staticmethod
    def header(path: Path, delimiter: str, compression: str | None) -> list[str]:
        """Column names: the fields of the first line."""
        with open(path, "rb") as raw:
            stream = _decompress(raw, compression, path)
            line = b""
            while b"\n" not in line and len(line) < LONGEST_HEADER:
                if not (piece := _read(stream, 2**16, path)):
                    break
                line += piece
        line = line.split(b"\n")[0]
        text = ""
        try:
            if len(line) >= LONGEST_HEADER:
                raise csv.Error
            text = line.decode("utf-8-sig").rstrip("\r")
            names = next(csv.reader([text], delimiter=delimiter), [])
        except (UnicodeDecodeError, csv.Error):
            names = []
        if not names or "\x00" in text:
            raise TableError(f"{path.name} is not a text table (UTF-8) with a header line")
        return [name.strip() for name in names]

    @property
    def rows(self) -> int | None:
        """Number of records: not known before they are read."""
        return None

    def blocks(self) -> Iterator[Block]:
        """Pieces of the file, cut at ends of lines."""
        for columns in self._columns(slice(None)):
            if self._beside:
                columns.append(np.full(len(columns[0]), np.nan))
            *x, y = columns
            yield np.column_stack(x), y

    def responses(self) -> Iterator[NDArray[np.float64]]:
        """All lines are split, but of their fields one is read."""
        for (y,) in self._columns(slice(-1, None)):
            yield y

    def texts(self, rows: int) -> list[list[bytes]]:
        """The wanted fields of the first records as they are written. NOT PRIVATE."""
        found: list[list[bytes]] = []
        with open(self._path, "rb") as raw:
            stream = _decompress(raw, self._compression, self._path)
            for text in self._whole_lines(stream):
                for fields in self._fields_of(text, slice(None)):
                    found += [
                        list(row) for row in zip(*map(pa.Array.to_pylist, fields), strict=True)
                    ]
                    if len(found) >= rows:
                        return found[:rows]
        return found

    def _columns(self, which: slice) -> Iterator[list[NDArray[np.float64]]]:
        """Some of the wanted columns, the response last."""
        with open(self._path, "rb") as raw:
            stream = _decompress(raw, self._compression, self._path)
            for text in self._whole_lines(stream):
                yield from self._records(text, which)

    def _whole_lines(self, stream: Any) -> Iterator[bytes]:
        """The file behind its header; in place of a line that is too long, one that is as bad."""
        rest, skip = b"", True  # to the end of a line, the header's to begin with
        while piece := _read(stream, self._piece, self._path):
            if skip:
                start = piece.find(b"\n") + 1
                if not start:
                    continue
                piece, skip = piece[start:], False
            end = piece.rfind(b"\n") + 1
            if end:
                yield rest + piece[:end]
                rest = b""
            rest += piece[end:]
            if len(rest) > self._longest:
                yield _BAD_LINE
                rest, skip = b"", True
        if rest:  # the last line may lack its newline
            yield rest

    def _records(self, text: bytes, which: slice) -> Iterator[list[NDArray[np.float64]]]:
        readers = self._readers[: len(self._wanted)][which]
        for fields in self._fields_of(text, which):
            yield [from_arrow(field, read) for field, read in zip(fields, readers, strict=True)]

    def _fields_of(self, text: bytes, which: slice) -> Iterator[list[pa.LargeBinaryArray]]:
        """Some of the wanted fields of whole lines, as text."""
        data = np.frombuffer(text, dtype=np.uint8)
        wanted = self._wanted[which]
        width, at = len(wanted), 0
        # Rows of a block are bounded, however short the lines are.
        starts = np.zeros((width, min(batch_rows(width), text.count(b"\n") + 1)), dtype=np.int64)
        ends = np.zeros_like(starts)
        column_of = np.full(self._fields, -1, dtype=np.int64)
        column_of[wanted] = np.arange(width)
        while at < len(data):
            rows, at = _split(
                data, at, ord(self._delimiter), self._fields, column_of, self._longest,
                LONGEST_TEXT, starts, ends,
            )  # fmt: skip
            if self._beside and (starts[:, :rows] < 0).any():
                raise TableError(
                    f"{self._path.name} has a line with another number of fields than its header, "
                    "with a quote that stays open, or that is too long: predictions need whole rows"
                )
            fields = []
            for w in range(width):
                column = packed(data, starts[w, :rows], ends[w, :rows])
                if self._quotes[w]:  # a quote within quotes is doubled
                    column = pc.replace_substring(column, '""', '"')
                fields.append(column)
            yield fields


def _has_quote(column: Column) -> bool:
    labels = column.labels or column.levels or ()
    return any('"' in label for label in labels if isinstance(label, str))


def _decompress(raw: IO[bytes], compression: str | None, path: Path) -> Any:
    if compression is None:
        return raw
    try:
        return pa.CompressedInputStream(raw, compression)
    except (pa.ArrowException, OSError):
        raise TableError(f"{path.name} cannot be decompressed") from None


def _read(stream: Any, size: int, path: Path) -> bytes:
    try:
        return bytes(stream.read(size))
    except (pa.ArrowException, OSError):
        raise TableError(f"{path.name} cannot be decompressed") from None


@kernel
def _split(
    data: NDArray[np.uint8],
    at: int,
    delimiter: int,
    fields: int,
    column_of: NDArray[np.int64],
    longest_line: int,
    longest_text: int,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[int, int]:
    """Where the wanted fields of each record from ``at`` on start and end.

    Returns the number of records, as many as there is room for, and where the next one starts. A
    field that opens with a quote runs to the closing quote (a doubled quote is part of it). A
    record with another number of fields than the header, with an open quote, or that is too long
    gets empty fields, at -1, and a field that is too long is empty.
    """
    row, n = 0, data.shape[0]
    while at < n and row < starts.shape[1]:
        stop = at
        while stop < n and data[stop] != 10:
            stop += 1
        following = stop + 1
        is_long = stop - at > longest_line
        if stop > at and data[stop - 1] == 13:
            stop -= 1
        if stop == at:
            at = following
            continue
        field, i, sound = 0, at, True
        while True:
            first = i
            last = -1
            if i < stop and data[i] == 34:
                i += 1
                first = i
                while i < stop and not (data[i] == 34 and not (i + 1 < stop and data[i + 1] == 34)):
                    i += 2 if data[i] == 34 else 1
                if i >= stop:
                    sound = False
                    break
                last = i
                i += 1
            while i < stop and data[i] != delimiter:
                i += 1
                last = -1  # characters behind a closing quote belong to the field
            if last < 0:
                last = i
            if field < fields and column_of[field] >= 0:
                starts[column_of[field], row] = first
                ends[column_of[field], row] = last if last - first <= longest_text else first
            field += 1
            if i >= stop:
                break
            i += 1
        if is_long or not sound or field != fields:
            for w in range(starts.shape[0]):
                starts[w, row] = -1
                ends[w, row] = -1
        row += 1
        at = following
    return row, min(at, n)
