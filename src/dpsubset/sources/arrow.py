"""Arrow's columns, converted by their declared type: tables, Parquet, and frames built on Arrow.

Text is never unfolded where it is folded (a dictionary, views of one buffer): a few kilobytes may
stand for gigabytes. Decimals go by way of their digits, since Arrow's own cast does not round
correctly, so that 1 in a column of `decimal128(38, 11)` would not be 1.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .cells import LONGEST_TEXT, NUMBERS, Reader

#: Bytes of text that are read at a time.
_TEXT = 2**25


def is_readable(kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type can hold numbers."""
    if pa.types.is_dictionary(kind):
        return is_readable(kind.value_type)
    return (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
        or is_text(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds text, or bytes that may be text."""
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or _is_view(kind)
    )


def from_arrow(column: pa.Array | pa.ChunkedArray, read: Reader = NUMBERS) -> NDArray[np.float64]:
    """The cells of a column of a readable type."""
    if isinstance(column, pa.ChunkedArray):
        parts = [from_arrow(chunk, read) for chunk in column.chunks]
        return np.concatenate(parts) if parts else np.empty(0)
    if pa.types.is_dictionary(column.type):
        return _from_dictionary(column, read)
    if is_text(column.type):
        return _from_text(column, read)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    # Unsafe casts round where safe ones raise (integers beyond 2**53).
    numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return read.numbers(np.asarray(numbers, dtype=np.float64))


def _from_dictionary(column: pa.DictionaryArray, read: Reader) -> NDArray[np.float64]:
    """Each value that occurs is read once."""
    values = column.dictionary
    codes = column.indices.cast(pa.int64(), safe=False).fill_null(-1).to_numpy()
    # A code beyond the dictionary, in a column that somebody put together, is a missing cell.
    codes = np.where(codes < len(values), codes, -1)
    used, places = np.unique(codes, return_inverse=True)
    readable = used >= 0
    if is_text(values.type):  # what is too long is not even copied
        readable[readable] = _is_short(values)[used[readable]]
    cells = np.full(len(used), np.nan)
    if _is_view(values.type):
        cells[readable] = read.texts(_unfolded(values, used[readable]))
    else:
        cells[readable] = from_arrow(values.take(pa.array(used[readable], pa.int64())), read)
    return cells[places]


def _from_text(column: pa.Array, read: Reader) -> NDArray[np.float64]:
    lengths, values, start = _lengths(column), np.empty(len(column)), 0
    lengths[lengths > LONGEST_TEXT] = 0
    ends = np.cumsum(lengths)
    while start < len(column):
        room = _TEXT + (ends[start - 1] if start else 0)
        stop = max(start + 1, int(np.searchsorted(ends, room, side="right")))
        values[start:stop] = read.texts(_bytes(column.slice(start, stop - start)))
        start = stop
    return values


def _bytes(column: pa.Array) -> pa.LargeBinaryArray:
    """Text as bytes, null where it is too long: bytes that are not UTF-8 are cells, not errors."""
    if _is_view(column.type):
        return _unfolded(column, np.arange(len(column)))
    return pc.if_else(pa.array(_is_short(column)), column, None).cast(pa.large_binary())


def _unfolded(column: pa.Array, places: NDArray[np.int64]) -> pa.LargeBinaryArray:
    """Views at some places as bytes; empty, which is as unreadable, if too long or null.

    Arrow has next to no functions for views, so these are changed by hand: 16 bytes each, of which
    the first four are the length.
    """
    _, views, *texts = column.buffers()
    if views is None:
        return pa.nulls(len(places), pa.large_binary())
    kept = _views(column)[places]
    kept[kept[:, 0] > LONGEST_TEXT] = 0
    kept[~np.asarray(column.is_valid())[places]] = 0
    buffers = [None, pa.py_buffer(np.ascontiguousarray(kept)), *texts]
    return pa.Array.from_buffers(pa.binary_view(), len(places), buffers).cast(pa.large_binary())


def _views(column: pa.Array) -> NDArray[np.int32]:
    views = np.frombuffer(column.buffers()[1], dtype=np.int32).reshape(-1, 4)
    return views[column.offset : column.offset + len(column)]


def _is_short(column: pa.Array) -> NDArray[np.bool_]:
    return _lengths(column) <= LONGEST_TEXT


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    """In bytes; any number where a cell is null."""
    if not _is_view(column.type):
        lengths = pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    elif column.buffers()[1] is None:
        lengths = np.zeros(len(column))
    else:
        lengths = _views(column)[:, 0]
    return np.array(lengths, dtype=np.int64)


def _is_view(kind: pa.DataType) -> bool:
    return kind in (pa.string_view(), pa.binary_view())
