"""Delimited text (CSV, TSV), read in pieces of the file.

One line is one record: where a record ends must not depend on another record, so a newline always
ends it, also inside quotes. A line with another number of fields than the header, or longer than
`LONGEST_LINE`, is a record of unreadable cells. Blank lines are not records. No line raises an
error, and memory does not grow with its length.
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
from ...schema.schema import AnySchema, Column
from . import ALL, Table, batch_rows
from .arrow import from_arrow, packed
from .cells import LONGEST_TEXT, readers
from .header import check_columns

#: Bytes read at a time.
_PIECE = 2**23

#: In bytes. A longer line is a record of unreadable cells.
LONGEST_LINE = 2**26

#: A file with a longer first line is not a table.
LONGEST_HEADER = 2**24

#: A line that reads as a record of unreadable cells: its quote stays open.
_BAD_LINE = b'"\n'


class DelimitedTable(Table):
    """A text file with a header line whose columns have been checked against a schema."""

    def __init__(
        self, path: Path, schema: AnySchema, *, delimiter: str, compression: str | None,
        piece: int = _PIECE, longest: int = LONGEST_LINE, refuse_bad_lines: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(schema)
        self._path, self._delimiter, self._compression = path, delimiter, compression
        self._piece, self._longest = piece, longest
        names = self.header(path, delimiter, compression)
        check_columns(names, schema, path.name)
        self._fields, self._refuse_bad_lines = len(names), refuse_bad_lines
        wanted = [names.index(column.name) for column in schema.columns_read]
        self._wanted = np.array(wanted, dtype=np.int64)
        self._readers = readers(schema)
        self._quotes = [_has_quote(column) for column in schema.columns_read]

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

    def columns(self, which: slice = ALL) -> Iterator[list[NDArray[np.float64]]]:
        """Batches of some columns. Lines are split as a whole; only these cells are converted."""
        for fields in self._fields_read(which):
            yield [
                from_arrow(field, read)
                for field, read in zip(fields, self._readers[which], strict=True)
            ]

    def texts(self, rows: int) -> list[list[bytes]]:
        """Raw text of the declared fields of the first records. NOT PRIVATE."""
        found: list[list[bytes]] = []
        for fields in self._fields_read(ALL):
            found += [list(row) for row in zip(*map(pa.Array.to_pylist, fields), strict=True)]
            if len(found) >= rows:
                break
        return found[:rows]

    def _fields_read(self, which: slice) -> Iterator[list[pa.LargeBinaryArray]]:
        """Batches of some of the declared fields, as text."""
        with open(self._path, "rb") as raw:
            stream = _decompress(raw, self._compression, self._path)
            for text in self._whole_lines(stream):
                yield from self._fields_of(text, which)

    def _whole_lines(self, stream: Any) -> Iterator[bytes]:
        """Pieces of whole lines, without the header. A line too long becomes `_BAD_LINE`."""
        rest, skip = b"", True  # skips to the end of a line, first of the header
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

    def _fields_of(self, text: bytes, which: slice) -> Iterator[list[pa.LargeBinaryArray]]:
        """Some of the declared fields of these lines, as text."""
        data = np.frombuffer(text, dtype=np.uint8)
        wanted = self._wanted[which]
        width, at = len(wanted), 0
        # The number of rows of a batch is bounded, however short the lines are.
        starts = np.zeros((width, min(batch_rows(width), text.count(b"\n") + 1)), dtype=np.int64)
        ends = np.zeros_like(starts)
        column_of = np.full(self._fields, -1, dtype=np.int64)
        column_of[wanted] = np.arange(width)
        while at < len(data):
            rows, at = _split(
                data, at, ord(self._delimiter), self._fields, column_of, self._longest,
                LONGEST_TEXT, starts, ends,
            )  # fmt: skip
            if self._refuse_bad_lines and (starts[:, :rows] < 0).any():
                raise TableError(
                    f"{self._path.name} has a line with another number of fields than its header, "
                    "with a quote that stays open, or that is too long: predictions need whole rows"
                )
            fields = []
            for w in range(width):
                column = packed(data, starts[w, :rows], ends[w, :rows])
                if self._quotes[which][w]:  # within quotes, "" stands for a quote
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
    """Find where the wanted fields of each record from ``at`` on start and end.

    Returns the number of records, at most as many as fit, and where the next one starts. A field
    that opens with a quote runs to the closing quote (a doubled quote is part of it). A record with
    another number of fields than the header, with an open quote, or that is too long gets empty
    fields, at -1; a field that is too long is empty.
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
