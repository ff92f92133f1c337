"""Arrow columns, converted by their type: of tables, Parquet files, and frames built on Arrow.

Text that is stored once for many cells (in a dictionary, as views of one buffer) is never expanded:
a few kilobytes may stand for gigabytes. Decimals are converted by their digits, since Arrow's cast
does not round correctly: 1 in a column of `decimal128(38, 11)` would not be 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...base.kernels.compiled import kernel
from . import dates
from .cells import LONGEST_TEXT, NUMBERS, Reader, Takes

#: Bytes of text that are converted at a time.
_TEXT = 2**25

#: Largest scale of decimals that Arrow can convert to text, by their number of bits.
_LARGEST_SCALE = {32: 9, 64: 18, 128: 38, 256: 76}


def is_readable(kind: pa.DataType, takes: Takes = NUMBERS.takes) -> bool:
    """Whether cells of this Arrow type may be read by a reader that takes these types.

    Text, and the type of columns without values, may always be read.
    """
    if pa.types.is_dictionary(kind):
        return is_readable(kind.value_type, takes)
    if pa.types.is_null(kind) or is_text(kind):
        return True
    if dates.is_temporal(kind):
        return "date" in takes
    types = pa.types
    if types.is_boolean(kind):
        return "boolean" in takes
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return numeric and "number" in takes


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds text or bytes."""
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or _is_view(kind)
    )


def from_arrow(column: pa.Array | pa.ChunkedArray, read: Reader = NUMBERS) -> NDArray[np.float64]:
    """The values of a column of a readable type."""
    if isinstance(column, pa.ChunkedArray):
        parts = [from_arrow(chunk, read) for chunk in column.chunks]
        return np.concatenate(parts) if parts else np.empty(0)
    if pa.types.is_dictionary(column.type):
        return _from_dictionary(column, read)
    if is_text(column.type):
        return _from_text(column, read)
    if dates.is_temporal(column.type):
        return read.days(dates.days_of_arrow(column))
    if pa.types.is_decimal(column.type):
        if abs(column.type.scale) > _LARGEST_SCALE[column.type.bit_width]:
            return read.numbers(_from_digits(column))
        column = column.cast(pa.string())
    # Unsafe casts round where safe ones raise (integers beyond 2**53).
    numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return read.numbers(np.asarray(numbers, dtype=np.float64))


def _from_digits(column: pa.Array) -> NDArray[np.float64]:
    """Decimals of a scale that Arrow cannot convert to text, by their integers."""
    width, scale = column.type.bit_width // 8, column.type.scale
    held = column.buffers()[1]
    values = np.full(len(column), np.nan)
    for i in np.flatnonzero(np.asarray(column.is_valid(), dtype=bool)):
        start = (column.offset + int(i)) * width
        digits = int.from_bytes(held[start : start + width].to_pybytes(), "little", signed=True)
        values[i] = float(f"{digits}E{-scale}")
    return values


def packed(
    data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> pa.LargeBinaryArray:
    """An array of text made of pieces of a buffer."""
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    text = np.empty(offsets[-1], dtype=np.uint8)
    _pack(data, starts, ends, text)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_binary(), len(starts), buffers)


@kernel
def _pack(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    text: NDArray[np.uint8],
) -> None:
    at = 0
    for row in range(starts.shape[0]):
        for i in range(starts[row], ends[row]):
            text[at] = data[i]
            at += 1


def _from_dictionary(column: pa.DictionaryArray, read: Reader) -> NDArray[np.float64]:
    """Convert each value that occurs once."""
    values = column.dictionary
    codes = column.indices.cast(pa.int64(), safe=False).fill_null(-1).to_numpy()
    # A code beyond the dictionary, in a malformed column, is a missing cell.
    codes = np.where(codes < len(values), codes, -1)
    used, places = np.unique(codes, return_inverse=True)
    known = used >= 0
    cells = np.full(len(used), np.nan)
    if is_text(values.type):
        cells[known] = _from_text(values, read, used[known])
    else:
        cells[known] = from_arrow(values.take(pa.array(used[known], pa.int64())), read)
    return cells[places]


def _from_text(
    column: pa.Array, read: Reader, places: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """The cells at some places, or all. Text that is too long is not copied."""
    if places is None:
        places = np.arange(len(column))
    lengths = _lengths(column)[places]
    values, start, ends = np.empty(len(places)), 0, np.cumsum(lengths)
    while start < len(places):
        room = _TEXT + (ends[start - 1] if start else 0)
        stop = max(start + 1, int(np.searchsorted(ends, room, side="right")))
        part = slice(start, stop)
        bytes_of = _text_of_views if _is_view(column.type) else _text_of_offsets
        values[part] = read.texts(bytes_of(column, places[part], lengths[part]))
        start = stop
    return values


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    """Lengths in bytes; 0 for a cell that is null or too long, which empty text stands for."""
    if _is_view(column.type):
        lengths = _views(column)[:, 0].astype(np.int64)
    else:
        lengths = np.diff(_offsets(column)).astype(np.int64)
    lengths[lengths > LONGEST_TEXT] = 0
    lengths[~np.asarray(column.is_valid(), dtype=bool)] = 0
    return lengths


# From the buffers: some of Arrow's own functions lose text of slices, others refuse views.


def _text_of_offsets(
    column: pa.Array, places: NDArray[np.int64], lengths: NDArray[np.int64]
) -> pa.LargeBinaryArray:
    starts = _offsets(column)[places].astype(np.int64)
    held = column.buffers()[2]
    data = np.empty(0, np.uint8) if held is None else np.frombuffer(held, dtype=np.uint8)
    return packed(data, starts, starts + lengths)


def _offsets(column: pa.Array) -> NDArray[Any]:
    held = column.buffers()[1]
    if held is None or not held.size:  # of an empty array
        return np.zeros(len(column) + 1, dtype=np.int64)
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    kind = np.dtype(np.int64 if wide else np.int32)
    return np.frombuffer(held, kind, len(column) + 1, column.offset * kind.itemsize)


def _text_of_views(
    column: pa.Array, places: NDArray[np.int64], lengths: NDArray[np.int64]
) -> pa.LargeBinaryArray:
    """A view has 16 bytes, of which the first four are the length."""
    kept = _views(column)[places]
    kept[lengths == 0] = 0
    buffers = [None, pa.py_buffer(np.ascontiguousarray(kept)), *column.buffers()[2:]]
    return pa.Array.from_buffers(pa.binary_view(), len(places), buffers).cast(pa.large_binary())


def _views(column: pa.Array) -> NDArray[np.int32]:
    held = column.buffers()[1]
    if held is None or not len(column):
        return np.zeros((len(column), 4), dtype=np.int32)
    return np.frombuffer(held, np.int32, 4 * len(column), 16 * column.offset).reshape(-1, 4)


def _is_view(kind: pa.DataType) -> bool:
    return kind in (pa.string_view(), pa.binary_view())
